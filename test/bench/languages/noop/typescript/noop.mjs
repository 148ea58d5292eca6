// The no-op executor on the TypeScript SDK.
import { Executor } from "../../../../../sdk/typescript/dist/index.js";
import { z } from "../../../../../sdk/typescript/node_modules/zod/index.js";

const ex = new Executor({ pool: "bench-typescript", concurrency: Number(process.env.BENCH_CONCURRENCY) });
ex.function("noop_typescript", { description: "Does nothing.", input: z.object({ text: z.string() }), effects: "none" }, () => "ok");
await ex.run();
