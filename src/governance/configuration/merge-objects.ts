// Merges a template into a live value, as config-policy-controller does. Inputs are shared, never changed.
import { valueText } from '../../go/index.ts';
import { isJsonObject, own, setOwn } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import { DesiredItems, isIdentity } from './desired-items.ts';
import { equivalence } from './equivalent-objects.ts';
import type { EquivalenceContext } from './equivalent-objects.ts';
import { DEFAULT_KEY } from './list-keys.ts';
import type { ListKeys } from './list-keys.ts';

export interface MergeContext extends EquivalenceContext {
  /** The list keys below the merged value. */
  readonly listKeys: ListKeys;
}

/** A template merged into the live value. */
export interface Merge<T extends JsonValue = JsonValue> {
  readonly value: T;
  /** Whether an object of the template has a key that the live one lacks. */
  readonly hasMissingKey: boolean;
}

/** The live value with everything that the template asks for: the target of `musthave`. */
export function mergeValues(desired: JsonValue, live: JsonValue | undefined, context: MergeContext): Merge {
  context.budget.visit();
  if (isJsonObject(desired)) {
    return isJsonObject(live) ? mergeMaps(desired, live, context) : unmerged(desired);
  }
  if (Array.isArray(desired)) {
    return Array.isArray(live) ? mergeLists(desired, live, context) : unmerged(desired);
  }
  return unmerged(desired === null && isJsonObject(live) ? live : desired);
}

/** The fields of both objects; those of the template win. */
export function mergeMaps(desired: JsonObject, live: JsonObject, context: MergeContext): Merge<JsonObject> {
  const value: JsonObject = {};
  let hasMissingKey = false;
  for (const [key, item] of Object.entries(live)) {
    context.budget.visit();
    setOwn(value, key, item);
  }
  for (const [key, item] of Object.entries(desired)) {
    const existing = own(live, key);
    const merge =
      existing === undefined
        ? { value: item, hasMissingKey: true }
        : mergeValues(item, existing, { ...context, listKeys: context.listKeys.field(key) });
    setOwn(value, key, merge.value);
    hasMissingKey ||= merge.hasMissingKey;
  }
  return { value, hasMissingKey };
}

/**
 * The items of the template, each merged with the live item that it matches, and then the live items that none matches.
 * Each item of the template matches at most one live item, so a template item that matches none is added.
 */
function mergeLists(
  desired: readonly JsonValue[],
  live: readonly JsonValue[],
  context: MergeContext,
): Merge<JsonValue[]> {
  const value = [...desired];
  const items = new DesiredItems(desired, context.listKeys.key);
  const remaining: JsonValue[] = [];
  let hasMissingKey = false;
  for (const { item, text, copies } of distinctItems(live, context)) {
    let unmatched = copies;
    for (const index of items.candidates(item, text, context.budget)) {
      const match = matchItems(desired[index] ?? null, item, context);
      if (match !== undefined) {
        value[index] = match.value;
        hasMissingKey ||= match.hasMissingKey;
        items.remove(index);
        unmatched -= 1;
      }
      if (unmatched === 0) {
        break;
      }
    }
    for (let copy = 0; copy < unmatched; copy++) {
      remaining.push(item);
    }
  }
  return { value: [...value, ...remaining], hasMissingKey };
}

/** A template item merged into the live item that it matches; undefined if it does not. */
function matchItems(desired: JsonValue, live: JsonValue, context: MergeContext): Merge | undefined {
  context.budget.visit();
  const areMaps = isJsonObject(desired) && isJsonObject(live);
  const merge = areMaps
    ? mergeMaps(desired, live, { ...context, listKeys: context.listKeys.items() })
    : unmerged(desired);
  const result = equivalence(merge.value, live, context);
  const isMatch = result !== 'different' || (areMaps && hasSameKey(desired, live, context.listKeys.key));
  return isMatch ? { value: merge.value, hasMissingKey: merge.hasMissingKey || result === 'zero' } : undefined;
}

function hasSameKey(desired: JsonObject, live: JsonObject, key: string): boolean {
  const [left, right] = [own(desired, key), own(live, key)];
  if (!isIdentity(left) || !isIdentity(right)) {
    return false;
  }
  // A name is a string; the fields of list keys may be numbers.
  return key === DEFAULT_KEY ? left === right && typeof left === 'string' : String(left) === String(right);
}

interface DistinctItem {
  readonly item: JsonValue;
  readonly text: string;
  copies: number;
}

/** The items of a live list without duplicates, in their order. */
function distinctItems(list: readonly JsonValue[], { budget }: MergeContext): Iterable<DistinctItem> {
  const distinct = new Map<string, DistinctItem>();
  for (const item of list) {
    const text = budget.write(valueText(item));
    const known = distinct.get(text);
    if (known === undefined) {
      distinct.set(text, { item, text, copies: 1 });
    } else {
      known.copies += 1;
    }
  }
  return distinct.values();
}

function unmerged(value: JsonValue): Merge {
  return { value, hasMissingKey: false };
}
