// The order of merged lists: elements of the patch in the order of the patch, the others where they were relative to these.
import { isJsonObject } from '../../resources/index.ts';
import type { JsonValue } from '../../resources/index.ts';

/** Splits elements into those that `known` contains, and the others. */
export function partition(
  elements: readonly JsonValue[],
  known: readonly JsonValue[],
  mergeKey: string | undefined,
): readonly [JsonValue[], JsonValue[]] {
  const keys = new Set(known.map((one) => identity(one, mergeKey)));
  const mine: JsonValue[] = [];
  const others: JsonValue[] = [];
  for (const element of elements) {
    (keys.has(identity(element, mergeKey)) ? mine : others).push(element);
  }
  return [mine, others];
}

/** Merges `mine`, in the order of the patch, and `others`. Each of the others stays before the elements that it preceded. */
export function ordered(
  mine: readonly JsonValue[],
  others: readonly JsonValue[],
  patchOrder: readonly JsonValue[],
  serverOrder: readonly JsonValue[],
  mergeKey: string | undefined,
): JsonValue[] {
  const positions = positionsOf(serverOrder, mergeKey);
  const left = sortedBy(others, positions, mergeKey);
  const right = sortedBy(mine, positionsOf(patchOrder, mergeKey), mergeKey);
  const result: JsonValue[] = [];
  let at = 0;
  for (const element of right) {
    const position = positions.get(identity(element, mergeKey));
    for (let other = left[at]; other !== undefined; other = left[at]) {
      const otherPosition = positions.get(identity(other, mergeKey));
      if (position === undefined || otherPosition === undefined || otherPosition >= position) {
        break;
      }
      result.push(other);
      at++;
    }
    result.push(element);
  }
  return [...result, ...left.slice(at)];
}

function positionsOf(list: readonly JsonValue[], mergeKey: string | undefined): ReadonlyMap<JsonValue, number> {
  const positions = new Map<JsonValue, number>();
  for (const [index, element] of list.entries()) {
    const key = identity(element, mergeKey);
    if (!positions.has(key)) {
      positions.set(key, index);
    }
  }
  return positions;
}

/** A stable sort. Elements without a position come first. */
function sortedBy(
  elements: readonly JsonValue[],
  positions: ReadonlyMap<JsonValue, number>,
  mergeKey: string | undefined,
): readonly JsonValue[] {
  const positionOf = (element: JsonValue): number => positions.get(identity(element, mergeKey)) ?? -1;
  return elements.toSorted((a, b) => positionOf(a) - positionOf(b));
}

function identity(element: JsonValue, mergeKey: string | undefined): JsonValue {
  return mergeKey !== undefined && isJsonObject(element) && Object.hasOwn(element, mergeKey)
    ? (element[mergeKey] ?? null)
    : element;
}
