import { type CallKey, type Dispatch, handoverId, keyId } from "../wire/dispatch.js";
import { Notices } from "./notices.js";

/** Knows the calls that this process holds, to find a repeated delivery and the target of a cancel notice. */
export class Inflight {
  readonly #held = new Map<string, Held>();
  readonly #byKey = new Map<string, Set<Held>>();
  readonly #notices = new Notices();

  /** Enters the call; undefined when this very hand-over is held already. */
  add(d: Dispatch): Held | undefined {
    const id = handoverId(d);
    if (this.#held.has(id)) return undefined;
    const key = keyId(d.key);
    const held = new Held(this.#notices.about(key));
    this.#held.set(id, held);
    const siblings = this.#byKey.get(key);
    if (siblings) siblings.add(held);
    else this.#byKey.set(key, new Set([held]));
    return held;
  }

  remove(d: Dispatch): void {
    const id = handoverId(d);
    const held = this.#held.get(id);
    if (held === undefined) return;
    this.#held.delete(id);
    const key = keyId(d.key);
    const siblings = this.#byKey.get(key);
    siblings?.delete(held);
    if (siblings?.size === 0) this.#byKey.delete(key);
  }

  /** Cancels all attempts of the call, and says whether there was one. */
  cancel(key: CallKey): boolean {
    const id = keyId(key);
    const found = this.#byKey.get(id);
    if (found === undefined) {
      this.#notices.note(id);
      return false;
    }
    for (const held of found) held.cancel();
    return true;
  }
}

/** One call in this process, from its delivery to its end. */
export class Held {
  #cancelled = false;
  #cancel: (() => void) | undefined;

  /** noticed: a cancel notice about the call came before it. */
  constructor(readonly noticed: boolean) {}

  get cancelled(): boolean {
    return this.#cancelled;
  }

  cancel(): void {
    this.#cancelled = true;
    this.#cancel?.();
  }

  /** Tells how to cancel what is done with the call now; a notice that came earlier cancels it at once. */
  started(cancel: () => void): void {
    this.#cancel = cancel;
    if (this.#cancelled) cancel();
  }
}
