import { ConfigurationError, Failure } from "./errors.js";
import { asObject } from "./wire/jsontext.js";

/** A schema of any library that follows Standard Schema (https://standardschema.dev), such as zod, Valibot or ArkType. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    /** Standard JSON Schema, which zod has since 4.2. */
    readonly jsonSchema?: { readonly input: (options: { readonly target: "draft-2020-12" }) => Record<string, unknown> } | undefined;
  };
}

export type StandardResult<Output> = { readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly StandardIssue[] };

export interface StandardIssue {
  readonly message: string;
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined;
}

/** What a schema makes of arguments that fit. */
export type OutputOf<Schema extends StandardSchema> = NonNullable<Schema["~standard"]["types"]>["output"];

/** The JSON Schema of the arguments, derived from the schema. */
export function parametersOf(schema: StandardSchema): Record<string, unknown> {
  const standard = schema["~standard"];
  if (standard.jsonSchema === undefined) {
    throw new ConfigurationError(
      `no JSON Schema can be derived from this schema of ${standard.vendor}; give one by the option parameters` + (standard.vendor === "zod" ? ", or use zod 4.2 or newer" : ""),
    );
  }
  let derived: Record<string, unknown>;
  try {
    derived = standard.jsonSchema.input({ target: "draft-2020-12" });
  } catch (error) {
    throw new ConfigurationError(`no JSON Schema can be derived from input: ${error instanceof Error ? error.message : String(error)}; give one by the option parameters`);
  }
  const { $schema: _, ...parameters } = derived;
  return parameters;
}

/** Checks that a JSON Schema can be the parameters of a function. */
export function checkParameters(parameters: unknown): asserts parameters is Record<string, unknown> {
  const schema = asObject(parameters);
  if (schema === undefined) throw new ConfigurationError("the parameters are not a JSON Schema, which is an object");
  if ("type" in schema && schema["type"] !== "object") throw new ConfigurationError(`the parameters have the type ${JSON.stringify(schema["type"])}; the arguments of a function are an object`);
}

/** Parses arguments as JSON.parse does. What is no object is a failure for the model. */
export function parseArguments(text: string): Record<string, unknown> {
  let value: Record<string, unknown> | undefined;
  try {
    value = asObject(JSON.parse(text));
  } catch {
    throw invalidArguments("not valid JSON");
  }
  if (value === undefined) throw invalidArguments("want a JSON object");
  return value;
}

/** What the schema makes of the arguments. What does not fit is a failure that names the member. */
export async function validate<Schema extends StandardSchema>(schema: Schema, text: string): Promise<OutputOf<Schema>> {
  const result = await schema["~standard"].validate(parseArguments(text));
  if (result.issues === undefined) return result.value as OutputOf<Schema>;
  throw invalidArguments(result.issues.map(issueText).join("; "));
}

function issueText(issue: StandardIssue): string {
  const path = (issue.path ?? []).map((step) => String(typeof step === "object" ? step.key : step)).join(".");
  return path === "" ? issue.message : `${path}: ${issue.message}`;
}

function invalidArguments(text: string): Failure {
  return new Failure(`invalid arguments: ${text}`, { cause: "invalid_arguments" });
}
