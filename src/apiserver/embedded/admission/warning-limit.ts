/** Characters of all warnings of an answer: the limit of API servers, which keeps headers small. */
export const MAX_WARNINGS_LENGTH = 4096;

/** Characters that are left of a warning which is too long for the rest. */
export const TRUNCATED_WARNING_LENGTH = 256;

/** Warnings are sent as headers: what cannot be in one is dropped, as API servers do. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}]/u;

/** Passes warnings on, each once, and no more than fit into an answer. */
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
