// The function block of protocol/conformance.md, which computes: it runs in worker threads.
import type { Call } from "callfan";
import { log } from "./conformance-journal.js";

export default function block({ ms }: { readonly ms: number }, call: Call): string {
  log("start", call);
  for (const end = Date.now() + ms; Date.now() < end; );
  log("end", call);
  return "blocked";
}
