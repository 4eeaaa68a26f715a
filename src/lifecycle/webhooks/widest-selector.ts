import { isDeepStrictEqual } from 'node:util';
import type { MatchSelector } from '../../resources/index.ts';

/** The requirements that all selectors share: it selects whatever any of them does. */
export function widestSelector(selectors: readonly MatchSelector[]): MatchSelector {
  const [only, ...others] = distinct(selectors);
  if (others.length === 0) {
    return only ?? {};
  }
  const all = [only ?? {}, ...others];
  const labels = common(all.map(({ matchLabels = {} }) => Object.entries(matchLabels)));
  const expressions = common(all.map(({ matchExpressions = [] }) => matchExpressions));
  return {
    ...(labels.length === 0 ? {} : { matchLabels: Object.fromEntries(labels) }),
    ...(expressions.length === 0 ? {} : { matchExpressions: expressions }),
  };
}

/** Whether `wide` selects everything that `narrow` does, because `narrow` has all requirements of `wide`. */
export function isAtLeastAsWide(wide: MatchSelector, narrow: MatchSelector): boolean {
  const labels = narrow.matchLabels ?? {};
  return (
    Object.entries(wide.matchLabels ?? {}).every(
      ([key, value]) => Object.hasOwn(labels, key) && labels[key] === value,
    ) &&
    (wide.matchExpressions ?? []).every((one) => (narrow.matchExpressions ?? []).some((other) => isSame(one, other)))
  );
}

/** Entries of the first list that are in all others. */
export function common<T>([first = [], ...others]: readonly (readonly T[])[]): readonly T[] {
  return first.filter((one) => others.every((other) => other.some((another) => isDeepStrictEqual(another, one))));
}

/** Values without duplicates, in their order. */
export function distinct<T>(values: readonly T[]): readonly T[] {
  const seen = new Map<string, T>();
  for (const value of values) {
    const key = JSON.stringify(value);
    if (!seen.has(key)) {
      seen.set(key, value);
    }
  }
  return [...seen.values()];
}

type Expression = NonNullable<MatchSelector['matchExpressions']>[number];

/** Treats absent and empty values alike, because API servers drop empty lists. */
function isSame(one: Expression, other: Expression): boolean {
  return (
    one.key === other.key && one.operator === other.operator && isDeepStrictEqual(one.values ?? [], other.values ?? [])
  );
}
