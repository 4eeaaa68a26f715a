import { KeptEntries } from '../../values/index.ts';

/** Limits of a {@link RevisionCache}. */
export interface RevisionCacheLimits {
  readonly maxEntries: number;
  /** Maximum length of all texts, in characters; a longer text is not cached. Default: no limit. */
  readonly maxLength?: number;
}

/** Caches texts derived from objects, by the revision of the objects. The oldest texts are evicted first. */
export class RevisionCache {
  readonly #maxLength: number;
  readonly #kept: KeptEntries<string, { readonly revision: string; readonly text: string }>;

  constructor({ maxEntries, maxLength = Infinity }: RevisionCacheLimits) {
    this.#maxLength = maxLength;
    this.#kept = new KeptEntries({ maxEntries, maxSize: maxLength, sizeOf: ({ text }) => text.length });
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
    this.#kept.delete(key);
    if (revision !== undefined && text.length <= this.#maxLength) {
      this.#kept.set(key, { revision, text });
    }
    return text;
  }
}
