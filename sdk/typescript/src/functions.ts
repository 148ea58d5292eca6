import { type Call, type Handler, type VerifyHandler, cannotTell } from "./call.js";
import type { Registered } from "./engine/registered.js";
import { ConfigurationError, Failure } from "./errors.js";
import { encodeOutput } from "./output.js";
import { type PolicyOptions, policyOf } from "./policy.js";
import { type OutputOf, type StandardSchema, checkParameters, parametersOf, parseArguments, validate } from "./schema.js";

/** Declares a function. */
export interface FunctionOptions extends PolicyOptions {
  /** Tells the model what the function does. */
  readonly description?: string;
  /** The JSON Schema of the arguments, an object schema. It replaces the one that is derived from input. */
  readonly parameters?: Record<string, unknown>;
}

/** Declares a function whose arguments are checked by a schema. */
export interface TypedOptions<Schema extends StandardSchema> extends FunctionOptions {
  /** Checks and types the arguments: an object schema of zod or of any other Standard Schema library. */
  readonly input: Schema;
  readonly verify?: VerifyHandler<OutputOf<Schema>>;
}

/** Declares a function whose handler gets the arguments as JSON.parse reads them, unchecked. */
export interface UntypedOptions extends FunctionOptions {
  readonly input?: undefined;
  readonly verify?: VerifyHandler<Record<string, unknown>>;
}

/** Declares a function whose handler gets the very text of the arguments. */
export interface RawOptions extends FunctionOptions {
  readonly verify?: VerifyHandler<string>;
}

/** Declares a function whose handler runs in a worker thread. */
export interface WorkerOptions extends FunctionOptions {
  /** Checks the arguments before they go to the thread. */
  readonly input?: StandardSchema;
  /** The export of the module that is the handler. Default "default". */
  readonly export?: string;
  /** How many threads there are at most. Further calls wait for one, within their timeout. Default: as many as processors. */
  readonly threads?: number;
  /** Runs on the main thread. */
  readonly verify?: VerifyHandler<Record<string, unknown>>;
}

/** Reads the arguments of a call. What does not fit is a Failure. */
export type Read<Input> = (call: Call) => Input | Promise<Input>;

export function reader(schema: StandardSchema | undefined): Read<unknown> {
  return schema === undefined ? (call) => parseArguments(call.arguments) : (call) => validate(schema, call.arguments);
}

/** Puts a function together. It throws ConfigurationError. */
export function registered<Input>(
  name: string,
  options: FunctionOptions & { readonly input?: StandardSchema | undefined; readonly verify?: VerifyHandler<Input> },
  read: Read<Input>,
  run: (call: Call) => Promise<string>,
): Registered {
  if (typeof name !== "string" || name === "") throw new ConfigurationError("the function's name is empty");
  const { description, verify } = options;
  const parameters = options.parameters ?? (options.input && parametersOf(options.input));
  if (parameters !== undefined) checkParameters(parameters);
  if (verify !== undefined && typeof verify !== "function") throw new ConfigurationError("verify is not a function");
  const { wire, policy } = policyOf(options, verify !== undefined);
  return {
    definition: { name, ...(description !== undefined && { description }), ...(parameters !== undefined && { parameters }), verifies: verify !== undefined, policy: wire },
    policy,
    run,
    ...(verify !== undefined && { verify: verifying(verify, read) }),
  };
}

/** A handler that is run in this thread. */
export function running<Input>(handler: Handler<Input>, read: Read<Input>): (call: Call) => Promise<string> {
  if (typeof handler !== "function") throw new ConfigurationError("the handler is not a function");
  return async (call) => encodeOutput(await handler(await read(call), call));
}

/** Arguments that do not fit mean that it cannot tell. */
function verifying<Input>(verify: VerifyHandler<Input>, read: Read<Input>): NonNullable<Registered["verify"]> {
  return async (call) => {
    let input: Input;
    try {
      input = await read(call);
    } catch (error) {
      if (error instanceof Failure) return cannotTell(error.message);
      throw error;
    }
    return await verify(input, call);
  };
}
