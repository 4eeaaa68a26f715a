// Equivalence of a merged value with the live one, as config-policy-controller defines it.
import { compareStrings, valueText } from '../../go/index.ts';
import { isJsonObject, own } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import type { ComparisonBudget } from './comparison-budget.ts';
import { parseKubernetesQuantity } from './kubernetes-quantity.ts';

/**
 * `zero`: equal if the API server treats an absent field like a zero value. Only a dry run can tell.
 */
export type Equivalence = 'equal' | 'zero' | 'different';

export interface EquivalenceContext {
  /** Whether absent values equal zero values. For objects that are not checked by a dry run. */
  readonly zeroValueEqualsNil: boolean;
  readonly budget: ComparisonBudget;
}

/** Whether the live value is as specified. The merged value comes first: the relation is not symmetric. */
export function equivalence(merged: JsonValue, live: JsonValue | undefined, context: EquivalenceContext): Equivalence {
  context.budget.visit();
  if (isJsonObject(merged)) {
    return isJsonObject(live) ? mapEquivalence(merged, live, context) : 'different';
  }
  if (Array.isArray(merged)) {
    return Array.isArray(live)
      ? listEquivalence(merged, live, context)
      : asEquivalence(isAbsent(live) && isEmpty(merged));
  }
  const areZero = context.zeroValueEqualsNil && isZeroFor(merged, live);
  return asEquivalence(areZero || hasSameText(merged, live, context));
}

/** The text of a value in which the order of lists does not show. */
function sortedText(value: JsonValue, budget: ComparisonBudget): string {
  if (Array.isArray(value)) {
    return budget.write(
      `[${value
        .map((item) => sortedText(item, budget))
        .sort(compareStrings)
        .join(' ')}]`,
    );
  }
  if (isJsonObject(value)) {
    const entries = Object.entries(value).sort(([left], [right]) => compareStrings(left, right));
    return budget.write(`map[${entries.map(([key, item]) => `${key}:${sortedText(item, budget)}`).join(' ')}]`);
  }
  return budget.write(valueText(value));
}

function mapEquivalence(merged: JsonObject, live: JsonObject, context: EquivalenceContext): Equivalence {
  const keys = Object.keys(merged);
  if (keys.length < Object.keys(live).length) {
    return 'different';
  }
  return allOf(keys, (key) => fieldEquivalence(merged[key] ?? null, own(live, key), context));
}

/** Like {@link equivalence}, for a field of an object: it may be absent, and strings may be quantities. */
export function fieldEquivalence(
  merged: JsonValue,
  live: JsonValue | undefined,
  context: EquivalenceContext,
): Equivalence {
  if (isJsonObject(merged) && isAbsent(live)) {
    return asEquivalence(context.zeroValueEqualsNil && isEmpty(merged));
  }
  if (typeof merged === 'object' && merged !== null) {
    return equivalence(merged, live, context);
  }
  context.budget.visit();
  if (typeof merged === 'string') {
    return asEquivalence(merged === live || (live !== undefined && isSameString(merged, live, context)));
  }
  if (merged !== null && isAbsent(live)) {
    return isZero(merged) ? 'zero' : 'different';
  }
  return asEquivalence(hasSameText(merged, live, context));
}

/** Lists are equivalent in any order. */
function listEquivalence(merged: JsonValue[], live: JsonValue[], context: EquivalenceContext): Equivalence {
  if (merged.length !== live.length) {
    return 'different';
  }
  const [left, right] = [merged, live].map((list) => sortedItems(list, context.budget));
  return allOf([...(left ?? []).keys()], (index) =>
    itemEquivalence(left?.[index] ?? null, right?.[index] ?? null, context),
  );
}

function itemEquivalence(merged: JsonValue, live: JsonValue, context: EquivalenceContext): Equivalence {
  if (!isJsonObject(live)) {
    return asEquivalence(hasSameText(merged, live, context));
  }
  return isJsonObject(merged) ? mapEquivalence(merged, live, { ...context, zeroValueEqualsNil: true }) : 'different';
}

function sortedItems(list: readonly JsonValue[], budget: ComparisonBudget): readonly JsonValue[] {
  return list
    .map((item) => ({ item, text: sortedText(item, budget) }))
    .sort((left, right) => compareStrings(left.text, right.text))
    .map(({ item }) => item);
}

/** A string that is a quantity, such as `100m`, equals every string with the same quantity, such as `0.1`. */
function isSameString(merged: string, live: JsonValue, context: EquivalenceContext): boolean {
  const quantity = parseKubernetesQuantity(merged);
  if (quantity === undefined) {
    return hasSameText(merged, live, context);
  }
  const liveQuantity = typeof live === 'string' ? parseKubernetesQuantity(live) : undefined;
  return liveQuantity !== undefined && quantity.compareTo(liveQuantity) === 0;
}

function hasSameText(merged: JsonValue, live: JsonValue | undefined, { budget }: EquivalenceContext): boolean {
  return merged === live || budget.write(valueText(merged)) === budget.write(valueText(live));
}

function isZeroFor(merged: JsonValue, live: JsonValue | undefined): boolean {
  return (isAbsent(live) && merged !== null && isZero(merged)) || (merged === null && !isAbsent(live) && isZero(live));
}

function isZero(value: JsonValue | undefined): boolean {
  return value === 0 || value === '' || value === false;
}

function isAbsent(value: JsonValue | undefined): value is null | undefined {
  return value === undefined || value === null;
}

function isEmpty(value: JsonObject | JsonValue[]): boolean {
  return Object.keys(value).length === 0;
}

function asEquivalence(isEqual: boolean): Equivalence {
  return isEqual ? 'equal' : 'different';
}

function allOf<T>(values: readonly T[], of: (value: T) => Equivalence): Equivalence {
  let result: Equivalence = 'equal';
  for (const value of values) {
    const one = of(value);
    if (one === 'different') {
      return one;
    }
    result = one === 'zero' ? one : result;
  }
  return result;
}
