import { jsonString } from "./wire/outcome.js";

/** One part of a Content. */
export type Part = { readonly type: "input_text"; readonly text: string } | { readonly type: "input_image"; readonly image_url: string };

/** An output of several parts, in the order the model sees them. */
export class Content {
  readonly parts: readonly Part[];

  constructor(parts: readonly Part[]) {
    this.parts = parts;
  }
}

/** A part of that text. */
export function textPart(text: string): Part {
  return { type: "input_text", text };
}

/** An image by its URL, which may be a data URL. */
export function imagePart(url: string): Part {
  return { type: "input_image", image_url: url };
}

/** An output of several parts. */
export function parts(...all: readonly Part[]): Content {
  return new Content(all);
}

/** A handler's output that cannot be written. Its text goes to the model. */
export class InvalidOutput extends Error {
  override readonly name = "InvalidOutput";
}

/**
 * What a handler returned, as the wire carries it: a JSON string, an array of content parts, or null. A string is that
 * text; bytes are their text; undefined and null are no value; any other value is its JSON, serialised once.
 */
export function encodeOutput(value: unknown): string {
  if (value === undefined || value === null) return "null";
  if (typeof value === "string") return jsonString(value);
  if (value instanceof Uint8Array) return jsonString(new TextDecoder("utf-8", { ignoreBOM: true }).decode(value));
  if (value instanceof Content) return encodeContent(value);
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw new InvalidOutput(`the function's output cannot be written as JSON: ${error instanceof TypeError ? error.message.split("\n")[0] : "its toJSON failed"}`);
  }
  if (text === undefined) throw new InvalidOutput(`the function's output cannot be written as JSON: it is a ${typeof value}`);
  return jsonString(text);
}

function encodeContent(content: Content): string {
  if (content.parts.length === 0) throw new InvalidOutput("invalid content: it has no parts");
  const encoded = content.parts.map((part, i) => {
    switch (part.type) {
      case "input_text":
        return `{"type":"input_text","text":${jsonString(part.text)}}`;
      case "input_image":
        if (!part.image_url) throw new InvalidOutput(`invalid content: part ${i} is an image without a URL`);
        return `{"type":"input_image","image_url":${jsonString(part.image_url)}}`;
      default:
        throw new InvalidOutput(`invalid content: part ${i} is neither input_text nor input_image`);
    }
  });
  return `[${encoded.join(",")}]`;
}
