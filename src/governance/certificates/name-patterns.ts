import type { Pattern } from '../../go/patterns/index.ts';

/**
 * Instructions times characters of one evaluation: 50 ns each, so less than two seconds. Ten thousand certificates with names
 * of a hundred characters together, and a pattern of 30 instructions, as published policies have.
 */
const MAX_PATTERN_WORK = 30_000_000;

/** The patterns that names of certificates must, or must not, match. Created for each evaluation. */
export class NamePatterns {
  readonly #allowed: Pattern | undefined;
  readonly #disallowed: Pattern | undefined;
  #left = MAX_PATTERN_WORK;

  constructor(allowed: Pattern | undefined, disallowed: Pattern | undefined) {
    this.#allowed = allowed;
    this.#disallowed = disallowed;
  }

  /** Whether a pattern forbids a name; undefined when matching would take too long. */
  forbid(names: readonly string[]): boolean | undefined {
    for (const name of names) {
      for (const pattern of [this.#allowed, this.#disallowed]) {
        this.#left -= pattern === undefined ? 0 : pattern.programSize() * (1 + name.length);
        if (this.#left < 0) {
          return undefined;
        }
        if (pattern !== undefined && pattern.test(name) === (pattern === this.#disallowed)) {
          return true;
        }
      }
    }
    return false;
  }
}
