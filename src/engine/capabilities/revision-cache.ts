/** Limits of a {@link RevisionCache}. */
export interface RevisionCacheLimits {
  readonly maxEntries: number;
  /** Maximum length of all texts, in characters; a longer text is not cached. Default: no limit. */
  readonly maxLength?: number;
}

/** Caches texts derived from objects, by the revision of the objects. The oldest texts are evicted first. */
export class RevisionCache {
  readonly #maxEntries: number;
  readonly #maxLength: number;
  readonly #kept = new Map<string, { readonly revision: string; readonly text: string }>();
  #length = 0;

  constructor({ maxEntries, maxLength = Infinity }: RevisionCacheLimits) {
    this.#maxEntries = maxEntries;
    this.#maxLength = maxLength;
  }

  /**
   * The cached text with this key and revision, or the result of `make`.
   * @param revision read before `make` is called, so that a text may be newer than its revision, never older;
   * undefined: not cached
   */
  get(key: string, revision: string | undefined, make: () => string): string {
    const kept = this.#kept.get(key);
    if (revision !== undefined && kept?.revision === revision) {
      return kept.text;
    }
    const text = make();
    this.#delete(key);
    if (revision !== undefined && text.length <= this.#maxLength) {
      this.#kept.set(key, { revision, text });
      this.#length += text.length;
      this.#shrink();
    }
    return text;
  }

  #shrink(): void {
    for (const key of this.#kept.keys()) {
      if (this.#kept.size <= this.#maxEntries && this.#length <= this.#maxLength) {
        return;
      }
      this.#delete(key);
    }
  }

  #delete(key: string): void {
    this.#length -= this.#kept.get(key)?.text.length ?? 0;
    this.#kept.delete(key);
  }
}
