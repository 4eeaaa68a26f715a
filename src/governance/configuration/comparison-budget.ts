import { CodedError } from '../../values/index.ts';
import type { JsonValue } from '../../values/index.ts';

/** Why two objects cannot be compared. */
export type ComparisonErrorCode = 'too-deep' | 'too-much-work';

export class ComparisonError extends CodedError<ComparisonErrorCode> {
  override readonly name = 'ComparisonError';
}

/**
 * Maximum work of one comparison, about half a second. An object of 1.5 MiB, the limit of etcd, has at most 300,000
 * values, which may be visited 16 times. Only long lists of similar items without a key reach the limit.
 */
const MAX_COMPARISON_STEPS = 5_000_000;
/**
 * Maximum nesting of compared objects. The deepest Kubernetes objects (schemas in CustomResourceDefinitions) stay below
 * 100 levels; five frames for each of 500 levels fit the smallest stack.
 */
const MAX_COMPARISON_DEPTH = 500;
/** Characters of text that cost as much as visiting a value. */
const CHARACTERS_PER_STEP = 16;

/** The work that is left for one comparison. */
export class ComparisonBudget {
  #steps = MAX_COMPARISON_STEPS;

  /**
   * Pays for visiting values.
   *
   * @throws ComparisonError with code `too-much-work`
   */
  visit(values = 1): void {
    this.#spend(values);
  }

  /** Pays for a text that was built. */
  write(text: string): string {
    this.#spend(1 + text.length / CHARACTERS_PER_STEP);
    return text;
  }

  #spend(steps: number): void {
    this.#steps -= steps;
    if (this.#steps < 0) {
      const advice = 'give the list a key (listKeys), or compare fewer items';
      throw new ComparisonError(
        'too-much-work',
        `the object and its template have lists that take too long to compare, because too many of their items are similar; ${advice}`,
      );
    }
  }
}

/**
 * Checks the nesting of a value before recursive functions visit it.
 *
 * @throws ComparisonError with code `too-deep`
 */
export function checkNesting(value: JsonValue): void {
  // Level by level, because recursion is what the check protects.
  let level = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_COMPARISON_DEPTH) {
      throw new ComparisonError('too-deep', `expected at most ${MAX_COMPARISON_DEPTH} levels of nesting, got more`);
    }
    level = level.flatMap(childrenOf);
  }
}

function childrenOf(value: JsonValue): JsonValue[] {
  const children = typeof value === 'object' && value !== null ? Object.values(value) : [];
  return children.filter((child) => typeof child === 'object' && child !== null);
}
