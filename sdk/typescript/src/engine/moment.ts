/** Something that happens once, such as the stop of the executor. */
export class Moment {
  #happened = false;
  readonly #listeners = new Set<() => void>();

  get happened(): boolean {
    return this.#happened;
  }

  fire(): void {
    if (this.#happened) return;
    this.#happened = true;
    for (const listener of this.#listeners) listener();
    this.#listeners.clear();
  }

  /** Calls listener when it happens, or at once if it did. The function that is returned takes it back. */
  on(listener: () => void): () => void {
    if (this.#happened) {
      listener();
      return () => undefined;
    }
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Waits for it. */
  async wait(): Promise<void> {
    await new Promise<void>((resolve) => this.on(resolve));
  }
}

/** The longest time that setTimeout takes. */
const longest = 2 ** 31 - 1;

/** Calls back after so many milliseconds, also after more than 24 days. The function that is returned takes it back. */
export function after(ms: number, callback: () => void): () => void {
  let timer: NodeJS.Timeout;
  const arm = (left: number): void => {
    timer = setTimeout(() => (left > longest ? arm(left - longest) : callback()), Math.min(Math.max(left, 0), longest));
  };
  arm(ms);
  return () => clearTimeout(timer);
}

/** Waits; false when the moment came first. */
export async function pause(ms: number, until: Moment): Promise<boolean> {
  return await new Promise<boolean>((resolve) => {
    const cancel = after(ms, () => {
      forget();
      resolve(true);
    });
    const forget = until.on(() => {
      cancel();
      resolve(false);
    });
  });
}

/** Waits for promise; undefined when the moment came first. A later rejection of the promise is dropped. */
export async function unless<T>(until: Moment, promise: Promise<T>): Promise<T | undefined> {
  let forget: () => void = () => undefined;
  const over = new Promise<undefined>((resolve) => {
    forget = until.on(() => resolve(undefined));
  });
  try {
    return await Promise.race([promise, over]);
  } finally {
    forget();
    promise.catch(() => undefined);
  }
}
