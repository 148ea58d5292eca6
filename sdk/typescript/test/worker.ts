// Handlers of worker functions for tests.
import { Failure, Retry, Uncertain } from "callfan";

export default function fibonacci({ n }: { readonly n: number }): number {
  return n < 2 ? n : fibonacci({ n: n - 1 }) + fibonacci({ n: n - 2 });
}

export function busy({ ms }: { readonly ms: number }): string {
  for (const end = Date.now() + ms; Date.now() < end; );
  return "over";
}

export function fails({ how }: { readonly how: string }): unknown {
  switch (how) {
    case "failure":
      throw new Failure("no", { cause: "not_found" });
    case "retry":
      throw new Retry("busy", { afterMs: 7 });
    case "lost":
      throw new Uncertain("the bank hung up");
    case "output":
      return Symbol("no JSON");
    case "exit":
      process.exit(3);
  }
  throw new Error("secret-detail");
}
