import { isJsonObject, own } from '../../resources/index.ts';
import type { JsonObject, JsonValue } from '../../resources/index.ts';
import {
  anyKindOf,
  checkMergeDepth,
  elementOf,
  fieldElement,
  FieldSet,
  isSameJson,
  kindFor,
} from '../../resources/structured-merge/index.ts';
import type { ListType, MapType, MergeType, PathElement } from '../../resources/structured-merge/index.ts';

/** The fields that differ between two objects. The sets are disjoint. */
export interface Comparison {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
}

/** Compares two objects of a type, field by field. Throws MergeError `type-mismatch`. */
export function compareObjects(before: JsonObject, after: JsonObject, type: MergeType): Comparison {
  const comparer = new Comparer();
  comparer.compare(before, after, type);
  return comparer;
}

type Maybe = JsonValue | undefined;

class Comparer implements Comparison {
  readonly added = new FieldSet();
  readonly modified = new FieldSet();
  readonly removed = new FieldSet();
  readonly #path: PathElement[] = [];

  compare(before: Maybe, after: Maybe, type: MergeType): void {
    checkMergeDepth(this.#path.length);
    const kind = kindFor(type, before);
    const kindAfter = kindFor(type, after);
    let isLeaf: boolean;
    if (after === undefined) {
      isLeaf = this.#compareAs(kind, before, after, type);
    } else if (before === undefined || kind === kindAfter) {
      isLeaf = this.#compareAs(kindAfter, before, after, type);
    } else {
      // A list that became a map, for example: the list is removed, the map added.
      this.#compareAs(kind, before, after, type);
      isLeaf = this.#compareAs(kindAfter, before, after, type);
    }
    if (!isLeaf && before === undefined) {
      this.added.insert(this.#path);
    } else if (!isLeaf && after === undefined) {
      this.removed.insert(this.#path);
    }
  }

  /** Compares values as maps, lists or scalars. Returns whether they were compared as a whole. */
  #compareAs(kind: 'map' | 'scalar' | 'list' | undefined, before: Maybe, after: Maybe, type: MergeType): boolean {
    const { map, list } = type;
    switch (kind ?? anyKindOf(type)) {
      case 'map': {
        const maps = [before, after].map((one) => (isJsonObject(one) ? one : {}));
        const [left = {}, right = {}] = maps;
        if (map === undefined || map.isAtomic || maps.every((one) => Object.keys(one).length === 0)) {
          return this.#compareWhole(before, after);
        }
        this.#compareMaps(left, right, map);
        return false;
      }
      case 'list': {
        const left = Array.isArray(before) ? before : [];
        const right = Array.isArray(after) ? after : [];
        if (list === undefined || list.isAtomic || (left.length === 0 && right.length === 0)) {
          return this.#compareWhole(before, after);
        }
        this.#compareLists(left, right, list);
        return false;
      }
      default:
        return this.#compareWhole(before, after);
    }
  }

  #compareWhole(before: Maybe, after: Maybe): true {
    if (before === undefined) {
      this.added.insert(this.#path);
    } else if (after === undefined) {
      this.removed.insert(this.#path);
    } else if (!isSameJson(before, after)) {
      this.modified.insert(this.#path);
    }
    return true;
  }

  #compareMaps(before: JsonObject, after: JsonObject, map: MapType): void {
    for (const [name, value] of Object.entries(before)) {
      this.#compareBelow(fieldElement(name), value, own(after, name), map.field(name));
    }
    for (const [name, value] of Object.entries(after)) {
      if (!Object.hasOwn(before, name)) {
        this.#compareBelow(fieldElement(name), undefined, value, map.field(name));
      }
    }
  }

  #compareLists(before: readonly JsonValue[], after: readonly JsonValue[], list: ListType): void {
    const left = grouped(before, list);
    const right = grouped(after, list);
    for (const [text, { element, values }] of left) {
      this.#compareGroups(element, values, right.get(text)?.values ?? [], list);
    }
    for (const [text, { element, values }] of right) {
      if (!left.has(text)) {
        this.#compareGroups(element, [], values, list);
      }
    }
  }

  /** Compares the elements with the same key. Duplicates are compared as one value. */
  #compareGroups(
    element: PathElement,
    before: readonly JsonValue[],
    after: readonly JsonValue[],
    list: ListType,
  ): void {
    if (before.length <= 1 && after.length <= 1) {
      this.#compareBelow(element, before[0], after[0], list.element());
      return;
    }
    const path = [...this.#path, element];
    if (before.length > 1 && after.length > 1) {
      if (!isSameJson([...before], [...after])) {
        this.modified.insert(path);
      }
    } else if (before.length > 1) {
      if (after.length > 0) {
        this.#compareBelow(element, undefined, after[0], list.element());
      }
      this.removed.insert(path);
    } else {
      if (before.length > 0) {
        this.#compareBelow(element, before[0], undefined, list.element());
      }
      this.added.insert(path);
    }
  }

  /** Compares a field or element. Fields without a type are unknown, and not stored. */
  #compareBelow(element: PathElement, before: Maybe, after: Maybe, type: MergeType | undefined): void {
    if (type !== undefined) {
      this.#path.push(element);
      this.compare(before, after, type);
      this.#path.pop();
    }
  }
}

function grouped(
  values: readonly JsonValue[],
  list: ListType,
): ReadonlyMap<string, { readonly element: PathElement; readonly values: JsonValue[] }> {
  const groups = new Map<string, { readonly element: PathElement; readonly values: JsonValue[] }>();
  for (const [index, value] of values.entries()) {
    const element = elementOf(list, value, index);
    const group = groups.get(element.text);
    if (group === undefined) {
      groups.set(element.text, { element, values: [value] });
    } else {
      group.values.push(value);
    }
  }
  return groups;
}
