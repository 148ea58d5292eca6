import type { Call } from "../call.js";

/** What the threads of worker functions are told and tell. */
export type ToThread = { readonly run: { readonly input: unknown; readonly call: ThreadCall } } | { readonly abort: string };

export type ThreadCall = Omit<Call, "signal">;

export type FromThread =
  | { readonly output: string }
  | { readonly failure: string; readonly cause: string | undefined }
  | { readonly retry: string; readonly afterMs: number }
  | { readonly uncertain: string }
  | { readonly invalidOutput: string }
  | { readonly crash: string; readonly stack: string | undefined };

export interface ThreadData {
  readonly module: string;
  readonly export: string;
}
