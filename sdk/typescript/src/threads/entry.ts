// What a thread of a worker function runs: one call after the other.
import { parentPort, workerData } from "node:worker_threads";
import type { Handler } from "../call.js";
import { CallCancelled, CallTimedOut, ExecutorStopped, Failure, Retry, Uncertain, errorText } from "../errors.js";
import { InvalidOutput, encodeOutput } from "../output.js";
import type { FromThread, ThreadData, ToThread } from "./messages.js";

const port = parentPort;
if (port === null) throw new Error("this module is run by worker threads of callfan only");

const { module, export: name } = workerData as ThreadData;
let aborter: AbortController | undefined;

const loaded = (async (): Promise<Handler<unknown>> => {
  const handler = ((await import(module)) as Record<string, unknown>)[name];
  if (typeof handler !== "function") throw new TypeError(`${module} has no function as its export ${JSON.stringify(name)}`);
  return handler as Handler<unknown>;
})();
loaded.catch(() => undefined);

port.on("message", (message: ToThread) => {
  if ("abort" in message) aborter?.abort(reasonOf(message.abort));
  else void run(message.run).then((answer) => port.postMessage(answer));
});

async function run({ input, call }: { readonly input: unknown; readonly call: Omit<Parameters<Handler<unknown>>[1], "signal"> }): Promise<FromThread> {
  aborter = new AbortController();
  try {
    const handler = await loaded;
    return { output: encodeOutput(await handler(input, { ...call, signal: aborter.signal })) };
  } catch (error) {
    if (error instanceof Failure) return { failure: error.message, cause: error.cause };
    if (error instanceof Retry) return { retry: error.message, afterMs: error.afterMs };
    if (error instanceof Uncertain) return { uncertain: error.message };
    if (error instanceof InvalidOutput) return { invalidOutput: error.message };
    return { crash: errorText(error), stack: error instanceof Error ? error.stack : undefined };
  }
}

function reasonOf(name: string): Error {
  switch (name) {
    case "CallCancelled":
      return new CallCancelled("the call was cancelled");
    case "ExecutorStopped":
      return new ExecutorStopped("the executor stops");
    default:
      return new CallTimedOut("the function's time is over");
  }
}
