/**
 * Bounds how long a message was on its way. The server does not tell when it sent one, and a network that fails for a while
 * delivers late what was sent before. But what arrives after something that the server said was sent after that, and what
 * arrives after the answer to a ping was sent after the ping (ADR 0012). Times are milliseconds of a clock that never jumps.
 */
export class Transit {
  /** A time before which none of the messages that are still to be read was sent. */
  #sinceMs: number;
  /** When the server was pinged, while the messages behind a silence may all have been sent in it. */
  #pingedMs: number | undefined;
  #silenceMs = Infinity;

  constructor(nowMs: number) {
    this.#sinceMs = nowMs;
  }

  /** A pull was sent: its messages come after that. For silenceMs at most, the server says nothing on a network that is well. */
  asked(nowMs: number, silenceMs: number): void {
    this.#silenceMs = silenceMs;
    if (this.#pingedMs === undefined) this.#sinceMs = nowMs;
  }

  /** The longest that a message which is read now may have been on its way, and whether a ping is wanted. */
  read(nowMs: number): { readonly longestMs: number; readonly ping: boolean } {
    const longestMs = nowMs - this.#sinceMs;
    if (this.#pingedMs !== undefined) return { longestMs, ping: false };
    const ping = longestMs > this.#silenceMs;
    if (ping) this.#pingedMs = nowMs;
    else this.#sinceMs = nowMs;
    return { longestMs, ping };
  }

  /** The ping is answered, and all that came before the answer is read. */
  answered(): void {
    if (this.#pingedMs === undefined) return;
    this.#sinceMs = this.#pingedMs;
    this.#pingedMs = undefined;
  }
}
