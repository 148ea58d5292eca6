import { ConfigurationError } from "./errors.js";
import type { OnUncertain } from "./wire/dispatch.js";

/** A number of milliseconds, or a text of numbers with units as in "300ms", "1.5h", "1m30s". */
export type Duration = number | string;

/** What running a function twice does: it only reads; nothing more, with the same idempotency key; it may do it twice. */
export type Effects = "none" | "idempotent" | "side_effects";

/** How a function wants to be run. Operators may overrule every member. */
export interface PolicyOptions {
  /** Bounds one run of the handler. Default 30 s. */
  readonly timeout?: Duration;
  /** Bounds the wait for an executor. Default 60 s. */
  readonly queueTimeout?: Duration;
  /** Bounds the time from the claim to the answer, all attempts included. Default 15 min. */
  readonly totalDeadline?: Duration;
  /** How often a technical failure lets the call run, 1 to 1000. Default 3, with side effects 1. */
  readonly attempts?: number;
  /** The wait between attempts. Default 1 s, doubling, at most 1 min, 20 % longer or shorter. */
  readonly backoff?: { readonly initial?: Duration; readonly max?: Duration; readonly multiplier?: number; readonly jitter?: number };
  /** Default "side_effects", the safe one. */
  readonly effects?: Effects;
  /** Default "rerun" without side effects, else "verify" with a verify handler, else "fail". */
  readonly onUncertain?: OnUncertain;
}

/** What the executor itself needs of a policy, with its defaults. */
export interface Policy {
  readonly timeoutMs: number;
  readonly effects: Effects;
  readonly onUncertain: OnUncertain;
}

const unitMs: Readonly<Record<string, number>> = { ns: 1e-6, us: 1e-3, "µs": 1e-3, "μs": 1e-3, ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const durationText = /^\+?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)$/;
const durationPart = /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g;

/** A duration in milliseconds; undefined when it is none. */
export function milliseconds(duration: Duration): number | undefined {
  if (typeof duration === "number") return duration >= 0 && Number.isFinite(duration) ? duration : undefined;
  if (!durationText.test(duration)) return undefined;
  let sum = 0;
  for (const [, value, unit] of duration.matchAll(durationPart)) sum += Number(value) * (unitMs[unit ?? ""] ?? 0);
  return sum;
}

/** Checks the options and gives the policy as it is registered, and as the executor needs it. */
export function policyOf(options: PolicyOptions, verifies: boolean): { readonly wire: Record<string, unknown>; readonly policy: Policy } {
  const wire: Record<string, unknown> = {};
  const duration = (name: string, value: Duration | undefined, into: Record<string, unknown>): number => {
    if (value === undefined) return 0;
    const ms = typeof value === "number" || typeof value === "string" ? milliseconds(value) : undefined;
    if (ms === undefined) throw new ConfigurationError(`${name} is ${JSON.stringify(value)}; use milliseconds, or a text such as "30s", not negative`);
    if (ms > 0) into[name] = typeof value === "number" ? `${Math.max(1, Math.round(ms))}ms` : value;
    return ms;
  };
  const timeoutMs = duration("timeout", options.timeout, wire) || 30_000;
  duration("queue_timeout", options.queueTimeout, wire);
  duration("total_deadline", options.totalDeadline, wire);
  const { attempts, backoff, effects, onUncertain } = options;
  if (attempts !== undefined) {
    if (!Number.isInteger(attempts) || attempts < 1 || attempts > 1000) throw new ConfigurationError(`attempts is ${attempts}; use 1 to 1000`);
    wire["attempts"] = attempts;
  }
  if (backoff !== undefined) wire["backoff"] = backoffOf(backoff, duration);
  if (effects !== undefined) {
    if (!["none", "idempotent", "side_effects"].includes(effects)) throw new ConfigurationError(`effects is ${JSON.stringify(effects)}; use none, idempotent or side_effects`);
    wire["effects"] = effects;
  }
  if (onUncertain !== undefined) {
    if (!["rerun", "verify", "fail", "park"].includes(onUncertain)) throw new ConfigurationError(`onUncertain is ${JSON.stringify(onUncertain)}; use rerun, verify, fail or park`);
    if (onUncertain === "verify" && !verifies) throw new ConfigurationError("onUncertain is verify, and there is no verify handler; give one by the option verify");
    wire["on_uncertain"] = onUncertain;
  }
  const repeatable = effects === "none" || effects === "idempotent";
  const choice = onUncertain ?? (repeatable ? "rerun" : verifies ? "verify" : "fail");
  return { wire, policy: { timeoutMs, effects: effects ?? "side_effects", onUncertain: choice } };
}

function backoffOf(backoff: NonNullable<PolicyOptions["backoff"]>, duration: (name: string, value: Duration | undefined, into: Record<string, unknown>) => number): Record<string, unknown> {
  const wire: Record<string, unknown> = {};
  const initial = duration("initial", backoff.initial, wire);
  const max = duration("max", backoff.max, wire);
  if (max > 0 && max < initial) throw new ConfigurationError(`backoff.max is less than backoff.initial`);
  const { multiplier, jitter } = backoff;
  if (multiplier !== undefined) {
    if (!(multiplier >= 1 && multiplier <= 1000)) throw new ConfigurationError(`backoff.multiplier is ${multiplier}; use 1 to 1000`);
    wire["multiplier"] = multiplier;
  }
  if (jitter !== undefined) {
    if (!(jitter >= 0 && jitter <= 1)) throw new ConfigurationError(`backoff.jitter is ${jitter}; use 0 to 1`);
    wire["jitter"] = jitter;
  }
  return wire;
}
