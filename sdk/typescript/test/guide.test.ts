// Runs docs/executors/typescript.md: its commands, its programs, and what it promises.
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { callfan } from "./callfan.js";
import { root } from "./fixture.js";

const sdk = `${root}sdk/typescript/`;
const guide = readFileSync(`${root}docs/executors/typescript.md`, "utf8");

function blocks(language: string, text = guide): string[] {
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, "gm"))].map((match) => match[1] ?? "");
}

function block(language: string, text: string): string {
  const found = blocks(language).filter((b) => b.includes(text));
  assert.equal(found.length, 1, `${found.length} blocks of ${language} have ${text}`);
  return found[0] ?? "";
}

/** A checkout with what the guide uses, where it can do no harm. */
const checkout = mkdtempSync(join(tmpdir(), "callfan-guide-"));
after(() => rmSync(checkout, { recursive: true, force: true }));
for (const path of ["package.json", "package-lock.json", ".npmrc", "tsconfig.json", "README.md", "src"]) cpSync(sdk + path, join(checkout, "sdk/typescript", path), { recursive: true });
const project = join(checkout, "customers");

const environment: Record<string, string | undefined> = {
  ...process.env,
  NODE_TEST_CONTEXT: undefined, // this is no part of this test run
  CALLFAN_DEV_DIR: join(checkout, "state"),
  CALLFAN_DEV_NATS_LISTEN: "127.0.0.1:0",
  CALLFAN_DEV_SIMULATE_LISTEN: "127.0.0.1:0",
  CALLFAN_LISTEN: "127.0.0.1:0",
};

function command(commands: string): string[] {
  const lines = commands.replaceAll("go run ./cmd/callfan", `'${callfan()}'`).trim().split("\n");
  lines.push(`exec ${lines.pop()}`); // signals go to the program
  return ["-euc", lines.join("\n")];
}

function run(commands: string, cwd = checkout): string {
  const ran = spawnSync("/bin/sh", command(commands), { cwd, env: environment, encoding: "utf8", timeout: 300_000 });
  assert.equal(ran.status, 0, `${commands}\n${ran.stdout}${ran.stderr}`);
  return ran.stdout;
}

/** A program that runs in the background. */
class Background {
  output = "";
  readonly #process: ChildProcess;
  readonly #ended: Promise<number | null>;

  constructor(commands: string, cwd = checkout) {
    this.#process = spawn("/bin/sh", command(commands), { cwd, env: environment, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.#process.stdout, this.#process.stderr]) stream?.on("data", (data: Buffer) => (this.output += data.toString()));
    this.#ended = new Promise((resolve) => this.#process.on("exit", resolve));
    after(() => this.#process.kill("SIGKILL"));
  }

  async print(text: string): Promise<void> {
    for (let tries = 0; !this.output.includes(text); tries++) {
      assert.ok(tries < 1200 && this.#process.exitCode === null, `it does not print ${text}:\n${this.output}`);
      await delay(50);
    }
  }

  find(pattern: RegExp): string {
    const match = pattern.exec(this.output);
    assert.ok(match, `it does not print ${pattern}:\n${this.output}`);
    return match[1] ?? "";
  }

  async stop(): Promise<void> {
    this.#process.kill("SIGTERM");
    assert.equal(await this.#ended, 0, this.output);
  }
}

/** The pieces that are no program of their own, as one module. */
function pieces(): string {
  const found = blocks("ts").filter((b) => b.includes("shop.") || b.includes("new Executor({ pool: \"shop\""));
  assert.equal(found.length, 3);
  return found.join("\n");
}

test("the five minutes", { timeout: 600_000 }, async () => {
  const ran: string[] = [];
  const commands = (text: string): string => {
    const found = block("sh", text);
    ran.push(found);
    return found;
  };
  const dev = new Background(commands("callfan dev"));
  run(commands("npm pack"));
  await dev.print("OPENAI_API_KEY=any");
  environment["NATS_URL"] = dev.find(/NATS_URL=(\S+)/);
  environment["CALLFAN_DISPATCHER"] = dev.find(/health, admin +(\S+)/);
  writeFileSync(join(project, "customers.ts"), block("ts", "Answers calls of get_customer"));
  const executor = new Background(commands("node --import tsx customers.ts\n"), project);
  await executor.print("executor serves");
  const answer = run(commands("callfan ask").replace("http://127.0.0.1:8421/v1", dev.find(/OPENAI_BASE_URL=(\S+)/)));
  assert.ok(answer.includes('get_customer({"customer_id":"123"}) = "{\\"found\\":true,\\"name\\":\\"Example Customer\\"}"'), answer);
  assert.ok(answer.includes("Customer 456 was not found."), answer);
  await executor.stop();
  await dev.stop();
  writeFileSync(join(project, "customers.test.ts"), block("ts", "callfan/testing"));
  assert.match(run(commands("--test customers.test.ts"), project), /pass 2\n/);
  assert.deepEqual(ran.sort(), blocks("sh").sort(), "a block of commands is not run");

  // Its pieces work, and fit the types of the package.
  writeFileSync(join(project, "shop.ts"), pieces());
  writeFileSync(join(project, "routes.js"), block("js", "planRoutes"));
  writeFileSync(join(project, "readme.ts"), blocks("ts", readFileSync(`${sdk}README.md`, "utf8"))[0] ?? "");
  writeFileSync(join(project, "shop.test.ts"), shopTest);
  assert.match(run("node --import tsx --test shop.test.ts", project), /pass 3\n/);
  symlinkSync(`${sdk}node_modules/@types`, join(project, "node_modules/@types"));
  const compilerOptions = { target: "ES2022", module: "NodeNext", strict: true, noEmit: true, skipLibCheck: true, types: ["node"] };
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
  run(`${sdk}node_modules/.bin/tsc -p .`, project);
});

test("its program is the example", () => {
  assert.equal(block("ts", "Answers calls of"), readFileSync(`${root}examples/typescript/customers.ts`, "utf8"));
});

const shopTest = `
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { invoke } from "callfan/testing";
import { shop } from "./shop.js";

after(() => shop.closeThreads());

test("orders", async () => {
  const cancelled = await invoke(shop, "cancel_order", { order_id: 7 });
  assert.match(JSON.stringify(cancelled), /"success":true,"output":"cancelled with call_/);
  assert.deepEqual(await invoke(shop, "cancel_order", { order_id: 0 }), { success: false, error: "there is no order 0" });
  assert.deepEqual(await invoke(shop, "cancel_order", { order_id: 503 }), { retry: { reason: "the shop does not answer", after_ms: 2000 } });
});

test("routes", async () => {
  assert.deepEqual(await invoke(shop, "plan_routes", { stops: 3 }), { success: true, output: '{"stops":3,"planned":1}' });
});

test("payments", async () => {
  const uncertain = { uncertain: true };
  assert.deepEqual(await invoke(shop, "pay", { amount: 5 }, uncertain), { success: true, output: "paid 5" });
  assert.deepEqual(await invoke(shop, "pay", { amount: 6 }, uncertain), { success: true, output: "paid 6" });
  assert.deepEqual(await invoke(shop, "pay", { amount: 2_000_000 }, uncertain), { uncertain: { reason: "ask the bank" } });
});
`;
