/** How long, at least, a cancel notice is remembered, and how many. */
const forMs = 30_000;
const most = 10_000;

/** Remembers cancel notices about calls that are not here: a notice may overtake its call. */
export class Notices {
  #recent = new Set<string>();
  #older = new Set<string>();
  #since = 0;

  note(id: string): void {
    const now = performance.now();
    if (now - this.#since > forMs || this.#recent.size >= most) {
      this.#older = this.#recent;
      this.#recent = new Set();
      this.#since = now;
    }
    this.#recent.add(id);
  }

  about(id: string): boolean {
    return this.#recent.has(id) || this.#older.has(id);
  }
}
