/**
 * JSON as text: where the members of an object lie, for arguments that nobody may decode and encode again.
 * JSON.parse does not recurse and keeps the last of members that come twice, but rounds numbers and forgets their text.
 */

const marker = ',"arguments":';

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** The text of UTF-8; what is not valid becomes U+FFFD. */
export function textOf(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/** A JSON object as what JSON.parse made of it; undefined when it is none. */
export function asObject(value: unknown): Record<string, unknown> | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return value as Record<string, unknown>;
}

/** A member of the object itself, never one of its prototype. */
export function member(object: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** A call's payload: its members before the arguments, and the very text of the arguments. */
export interface Parts {
  readonly members: Record<string, unknown>;
  readonly arguments: string | undefined;
}

/** Takes a payload apart. It throws when the payload is not one JSON object. */
export function parts(payload: string): Parts {
  return fast(payload) ?? slow(payload);
}

/** Dispatchers write the arguments last, after members that are texts, numbers or booleans. */
function fast(payload: string): Parts | undefined {
  const at = payload.indexOf(marker);
  if (at < 0 || !payload.endsWith("}")) return undefined;
  const text = payload.slice(at + marker.length, -1);
  try {
    const members = asObject(JSON.parse(payload.slice(0, at) + "}"));
    JSON.parse(text);
    return members && { members, arguments: text.trim() };
  } catch {
    return undefined;
  }
}

function slow(payload: string): Parts {
  const members = asObject(JSON.parse(payload));
  if (members === undefined) throw new SyntaxError("the payload is not a JSON object");
  let found: string | undefined;
  // From here on the syntax is known to be right.
  let i = skipSpace(payload, skipSpace(payload, 0) + 1);
  while (payload[i] !== "}") {
    if (payload[i] === ",") i = skipSpace(payload, i + 1);
    let end = skipValue(payload, i);
    const name: unknown = JSON.parse(payload.slice(i, end));
    i = skipSpace(payload, skipSpace(payload, end) + 1);
    end = skipValue(payload, i);
    if (name === "arguments") found = payload.slice(i, end);
    i = skipSpace(payload, end);
  }
  return { members, arguments: found };
}

function skipSpace(text: string, i: number): number {
  while (text[i] === " " || text[i] === "\n" || text[i] === "\t" || text[i] === "\r") i++;
  return i;
}

/** The index after the value that starts at i. */
function skipValue(text: string, i: number): number {
  const first = text[i];
  if (first === '"') return skipString(text, i);
  if (first !== "{" && first !== "[") {
    while (i < text.length && !",}] \n\t\r".includes(text[i] ?? "")) i++;
    return i;
  }
  for (let depth = 0; ; i++) {
    switch (text[i]) {
      case '"':
        i = skipString(text, i) - 1;
        break;
      case "{":
      case "[":
        depth++;
        break;
      case "}":
      case "]":
        if (--depth === 0) return i + 1;
    }
  }
}

function skipString(text: string, i: number): number {
  for (i++; text[i] !== '"'; i++) if (text[i] === "\\") i++;
  return i + 1;
}
