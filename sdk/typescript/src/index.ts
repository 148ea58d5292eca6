/** An executor answers the function calls of OpenAI agents; see docs/executors/typescript.md. */
export { Executor, type RunOptions } from "./executor.js";
export type { ExecutorOptions } from "./config.js";
export type { FunctionOptions, RawOptions, TypedOptions, UntypedOptions, WorkerOptions } from "./functions.js";
export { type Call, type Handler, Verdict, type VerifyHandler, cannotTell, done, notDone } from "./call.js";
export { CallCancelled, CallTimedOut, ConfigurationError, ExecutorStopped, Failure, PermissionDenied, RegistrationRefused, Retry, Uncertain } from "./errors.js";
export { type LogFields, type Logger, jsonLogger, silentLogger } from "./logger.js";
export { Content, type Part, imagePart, parts, textPart } from "./output.js";
export type { Duration, Effects, PolicyOptions } from "./policy.js";
export type { OutputOf, StandardIssue, StandardResult, StandardSchema } from "./schema.js";
export type { CallKey, OnUncertain } from "./wire/dispatch.js";
export type { Definition } from "./wire/requests.js";
