/** Maximum number of characters of all warnings of a response, as in API servers. Warnings are sent as headers. */
export const MAX_WARNINGS_LENGTH = 4096;

/** Maximum length of a truncated warning, in characters. */
export const TRUNCATED_WARNING_LENGTH = 256;

/** Characters that a header must not contain. As in API servers, warnings with one are dropped. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}]/u;

/** Deduplicates warnings and limits their total length. */
export class WarningLimit {
  readonly #onWarning: (text: string) => void;
  readonly #seen = new Set<string>();
  #left = MAX_WARNINGS_LENGTH;

  constructor(onWarning: (text: string) => void) {
    this.#onWarning = onWarning;
  }

  add(text: string): void {
    const letters = Array.from(text);
    const fits = letters.length <= this.#left ? letters : letters.slice(0, TRUNCATED_WARNING_LENGTH);
    const shown = fits.join('');
    if (shown === '' || fits.length > this.#left || this.#seen.has(shown) || UNPRINTABLE.test(shown)) {
      return;
    }
    this.#seen.add(shown);
    this.#left -= fits.length;
    this.#onWarning(shown);
  }
}
