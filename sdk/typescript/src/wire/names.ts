import { createHash } from "node:crypto";

/** The version of the wire protocol that this package speaks. */
export const protocolVersion = "1";

const ownToken = /^[A-Za-z0-9_-]{1,64}$/;

/** The part of a subject that stands for a function's name; empty for the empty name. */
export function token(name: string): string {
  if (name === "" || ownToken.test(name)) return name;
  const bytes = Buffer.from(name.toWellFormed(), "utf8");
  if (bytes.length <= 128) return "=" + bytes.toString("base64url");
  return "~" + createHash("sha256").update(bytes).digest("base64url");
}

/** The subjects of an installation. */
export class Names {
  constructor(readonly prefix: string) {}

  register(name: string): string {
    return `${this.prefix}.register.${token(name)}`;
  }
  outcome(name: string): string {
    return `${this.prefix}.outcome.${token(name)}`;
  }
  cancel(name: string): string {
    return `${this.prefix}.cancel.${token(name)}`;
  }

  /** Whether subject is where the outcomes of the function with that token go. */
  isResult(subject: string, functionToken: string): boolean {
    const start = `${this.prefix}.result.${functionToken}.p`;
    if (!subject.startsWith(start)) return false;
    const partition = subject.slice(start.length);
    return /^(0\d|[1-9]\d{1,4})$/.test(partition);
  }
}

/** How often the message with that reply subject was handed out, from 1. */
export function deliveriesOf(reply: string): number {
  const parts = reply.split(".");
  const text = parts[parts.length >= 11 ? 6 : 4] ?? "";
  if (!/^[1-9]\d*$/.test(text)) return 1;
  return Number(text);
}
