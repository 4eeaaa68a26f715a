import type { ExceptionTerms } from '../../resources/index.ts';
import { type Exception, exceptionOf } from './exception.ts';

/** Exceptions by policy and namespace, so that a look-up does not depend on how many there are of others. */
export class ExceptionTable {
  /** By their names, `namespace/name`. */
  readonly #all = new Map<string, Exception>();
  /** By {@link placeKey}, then by name. */
  readonly #places = new Map<string, Map<string, Exception>>();

  get size(): number {
    return this.#all.size;
  }

  /** Adds or replaces an exception. */
  set(terms: ExceptionTerms): void {
    this.delete(terms);
    const exception = exceptionOf(terms);
    if (exception !== undefined) {
      this.#all.set(exception.name, exception);
      for (const { id } of terms.policies) {
        const key = placeKey(id, terms.namespace);
        const place = this.#places.get(key) ?? new Map<string, Exception>();
        this.#places.set(key, place.set(exception.name, exception));
      }
    }
  }

  delete({ namespace, name }: Pick<ExceptionTerms, 'namespace' | 'name'>): void {
    const id = `${namespace}/${name}`;
    for (const policy of this.#all.get(id)?.terms.policies ?? []) {
      const key = placeKey(policy.id, namespace);
      const place = this.#places.get(key);
      place?.delete(id);
      if (place?.size === 0) {
        this.#places.delete(key);
      }
    }
    this.#all.delete(id);
  }

  clear(): void {
    this.#all.clear();
    this.#places.clear();
  }

  /** When the next exception ends, in milliseconds since 1970; undefined: none does. */
  nextEnd(now: number): number | undefined {
    const ends = [...this.#all.values()].map(({ expiresAt }) => expiresAt).filter((end) => end > now);
    return ends.length === 0 ? undefined : ends.reduce((one, other) => Math.min(one, other));
  }

  /** Namespaces of the exceptions that end at an instant. */
  endingAt(instant: number): readonly string[] {
    return [...this.#all.values()].filter(({ expiresAt }) => expiresAt === instant).map(({ terms }) => terms.namespace);
  }

  /** The exceptions from a policy in a namespace that have not ended, in the order of their names. */
  of(policy: string, namespace: string, now: number): readonly Exception[] {
    const place = this.#places.get(placeKey(policy, namespace));
    return place === undefined
      ? []
      : [...place.values()]
          .filter(({ expiresAt }) => now < expiresAt)
          .toSorted((one, other) => (one.name < other.name ? -1 : 1));
  }
}

/** Differs where other exceptions apply: a part of the key of a verdict. Empty without any. */
export function exceptionsKey(exceptions: readonly Exception[]): string {
  return exceptions.map(({ terms }) => terms.version).join(' ');
}

/** Ids of policies contain no line break. */
function placeKey(policy: string, namespace: string): string {
  return `${policy}\n${namespace}`;
}
