import { isJsonObject } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import { isSameJson } from './json-order.ts';
import { elementOf } from './list-elements.ts';
import { checkMergeDepth, MergeError } from './merge-error.ts';
import { anyKindOf, kindFor } from './merge-type.ts';
import type { ListType, MapType, MergeType } from './merge-type.ts';
import { elementText } from './path-element.ts';
import type { PathElement } from './path-element.ts';

type Maybe = JsonValue | undefined;

/**
 * Merges an applied configuration into an object: its fields win, nothing is removed, and its order of list elements is
 * kept. Unchanged parts are shared. Throws MergeError `type-mismatch`.
 */
export function mergeValues(live: JsonObject, applied: JsonObject, type: MergeType): JsonObject {
  const result = merged(live, applied, type, 0);
  return isJsonObject(result) ? result : {};
}

function merged(live: Maybe, applied: Maybe, type: MergeType, depth: number): Maybe {
  checkMergeDepth(depth);
  if (applied === undefined) {
    return live;
  }
  const { map, list } = type;
  switch (kindFor(type, applied) ?? anyKindOf(type)) {
    case 'map': {
      const left = isJsonObject(live) ? live : {};
      const right = isJsonObject(applied) ? applied : {};
      const isEmpty = Object.keys(left).length === 0 && Object.keys(right).length === 0;
      return map === undefined || map.isAtomic || isEmpty ? whole(live, applied) : mergedMaps(left, right, map, depth);
    }
    case 'list': {
      const left = Array.isArray(live) ? live : [];
      const right = Array.isArray(applied) ? applied : [];
      const isEmpty = left.length === 0 && right.length === 0;
      return list === undefined || list.isAtomic || isEmpty
        ? whole(live, applied)
        : mergedLists(left, right, list, depth);
    }
    default:
      return applied;
  }
}

function whole(live: Maybe, applied: JsonValue): JsonValue {
  return live !== undefined && isSameJson(live, applied) ? live : applied;
}

function mergedMaps(live: JsonObject, applied: JsonObject, map: MapType, depth: number): JsonObject {
  const result = new Map(Object.entries(live));
  let isChanged = false;
  for (const [name, value] of Object.entries(applied)) {
    const type = map.field(name);
    const before = result.get(name);
    const after = type === undefined ? before : merged(before, value, type, depth + 1);
    if (after !== before && after !== undefined) {
      result.set(name, after);
      isChanged = true;
    }
  }
  return isChanged ? Object.fromEntries(result) : live;
}

interface Indexed {
  readonly elements: readonly PathElement[];
  /** Null for repeated elements, which are not merged. */
  readonly values: ReadonlyMap<string, JsonValue>;
}

function indexed(list: ListType, values: readonly JsonValue[], isLive: boolean): Indexed {
  const known = new Map<string, JsonValue>();
  const elements = values.map((value, index) => {
    const element = elementOf(list, value, index);
    if (known.has(element.text) && !isLive) {
      throw new MergeError('type-mismatch', `duplicate entries for key ${elementText(element)}`);
    }
    known.set(element.text, known.has(element.text) ? null : value);
    return element;
  });
  return { elements, values: known };
}

/** The elements of both lists in the applied order; elements of the live list only stay before their successors. */
function mergedLists(
  live: readonly JsonValue[],
  applied: readonly JsonValue[],
  list: ListType,
  depth: number,
): JsonValue[] {
  const right = indexed(list, applied, false);
  const left = indexed(list, live, true);
  const result: JsonValue[] = [];
  const taken = new Set<string>();
  // Elements of both lists, in the applied order.
  const shared = right.elements.filter(({ text }) => left.values.has(text));
  let turn = 0;
  const add = (before: Maybe, after: Maybe): void => {
    const value = merged(before, after, list.element(), depth + 1);
    if (value !== undefined) {
      result.push(value);
    }
  };
  const take = (element: PathElement): void => {
    taken.add(element.text);
    add(left.values.get(element.text), right.values.get(element.text));
    if (shared[turn]?.text === element.text) {
      turn++;
    }
  };
  let at = 0;
  let next = 0;
  while (at < left.elements.length || next < right.elements.length) {
    const mine = left.elements[at];
    const theirs = right.elements[next];
    if (mine !== undefined && mine.text === theirs?.text) {
      take(mine);
      at++;
      next++;
    } else if (mine !== undefined && !right.values.has(mine.text)) {
      // Only in the live list: stays with its own value, even when repeated.
      add(live[at], undefined);
      at++;
    } else if (
      mine !== undefined &&
      theirs !== undefined &&
      shared[turn] !== undefined &&
      shared[turn]?.text !== mine.text
    ) {
      // In both lists, but later in the applied order: it is added there.
      at++;
    } else {
      if (mine !== undefined && taken.has(mine.text)) {
        at++;
      }
      if (theirs !== undefined) {
        take(theirs);
        next++;
      }
    }
  }
  return result.length === live.length && result.every((value, index) => value === live[index])
    ? (live as JsonValue[])
    : result;
}
