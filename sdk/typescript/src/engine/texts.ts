/** Texts for the model and for operators that the executor itself decides; docs/protocol.md lists those of the protocol. */
export const unknownOutcomeText =
  "the outcome of this call is unknown: an earlier run was interrupted and may or may not have taken effect; do not assume either";
export const crashedText = "function crashed or its executors were lost: it was handed out several times and never finished";
export const panicText = "function crashed";
export const expiredText = "the call's deadline passed before the function was started";
export const noVerifyText = "on_uncertain is verify, and this executor has no verify handler for the function";
export const mayHaveRunText = "it may have run before, and this executor has no verify handler for the function";
export const notLookedUpText = "it may have run before, and no dispatcher said in time whether it was answered";
export const notVerifiedText = "it may have run before, and the call's deadline passed before it could be verified";
export const interruptedText = "the executor stopped and interrupted the function";
export const silentFailureText = "the function failed without saying why";

/** A time for people: 1500 is "1.5s". */
export function durationText(ms: number): string {
  const rounded = Math.round(ms);
  if (rounded < 1000) return `${rounded}ms`;
  const hours = Math.floor(rounded / 3_600_000);
  const minutes = Math.floor((rounded % 3_600_000) / 60_000);
  const seconds = `${(rounded % 60_000) / 1000}s`;
  if (hours > 0) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}
