import { isJsonObject } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import type { Schema } from '../schema.ts';
import { FieldSet } from './field-set.ts';
import { elementOf } from './list-elements.ts';
import { checkMergeDepth } from './merge-error.ts';
import { anyKindOf, kindFor, mergeTypeOf } from './merge-type.ts';
import type { ListType, MapType, MergeType } from './merge-type.ts';
import { fieldElement } from './path-element.ts';
import type { PathElement } from './path-element.ts';

/** The fields that an object sets, for server-side apply. Throws MergeError `type-mismatch`. */
export function fieldSetOf(object: JsonObject, schema: Schema): FieldSet {
  return fieldsOf(object, mergeTypeOf(schema));
}

/** The fields that a value sets: leaves, elements of lists, keys of maps, and empty or null values. */
export function fieldsOf(value: JsonObject, type: MergeType): FieldSet {
  return fieldsBelow(value, type, 0).children;
}

interface Fields {
  /** Whether the value itself is a field. */
  readonly isMember: boolean;
  readonly children: FieldSet;
}

/** Shared, because large objects have very many empty sets. Must not be changed. */
const EMPTY = new FieldSet();
const LEAF: Fields = { isMember: true, children: EMPTY };

function fieldsBelow(value: JsonValue, type: MergeType, depth: number): Fields {
  checkMergeDepth(depth);
  const { map, list } = type;
  switch (kindFor(type, value) ?? anyKindOf(type)) {
    case 'map':
      return map === undefined || map.isAtomic
        ? LEAF
        : { isMember: false, children: isJsonObject(value) ? mapFields(value, map, depth) : EMPTY };
    case 'list':
      return list === undefined || list.isAtomic
        ? LEAF
        : { isMember: false, children: Array.isArray(value) ? listFields(value, list, depth) : EMPTY };
    default:
      return LEAF;
  }
}

function mapFields(object: JsonObject, map: MapType, depth: number): FieldSet {
  const set = new FieldSet();
  for (const [name, value] of Object.entries(object)) {
    const type = map.field(name);
    const fields = type === undefined ? undefined : fieldsBelow(value, type, depth + 1);
    const isMember =
      fields?.isMember === true ||
      value === null ||
      (isJsonObject(value) && Object.keys(value).length === 0) ||
      !map.isNamed(name);
    set.put(fieldElement(name), isMember, fields?.children);
  }
  return set;
}

/** Repeated elements are one field, as a whole. */
function listFields(values: readonly JsonValue[], list: ListType, depth: number): FieldSet {
  const elements = new Map<string, { readonly element: PathElement; readonly values: JsonValue[] }>();
  for (const [index, value] of values.entries()) {
    const element = elementOf(list, value, index);
    const known = elements.get(element.text);
    if (known === undefined) {
      elements.set(element.text, { element, values: [value] });
    } else {
      known.values.push(value);
    }
  }
  const set = new FieldSet();
  for (const { element, values: same } of elements.values()) {
    const [only, ...others] = same;
    const isSingle = only !== undefined && others.length === 0;
    set.put(element, true, isSingle ? fieldsBelow(only, list.element(), depth + 1).children : undefined);
  }
  return set;
}
