import { isJsonObject } from '../../resources/index.ts';
import type { JsonObject, JsonValue } from '../../resources/index.ts';
import {
  anyKindOf,
  checkMergeDepth,
  elementOf,
  fieldElement,
  FieldSet,
  kindFor,
} from '../../resources/structured-merge/index.ts';
import type { ListType, MapType, MergeType } from '../../resources/structured-merge/index.ts';

/** Removes fields and list elements from an object. Values that become empty are null. Atomic values are kept or removed whole. */
export function removeFields(object: JsonObject, fields: FieldSet, type: MergeType): JsonObject {
  const result = removed(object, fields, type, 0);
  return isJsonObject(result) ? result : {};
}

function removed(value: JsonValue, fields: FieldSet, type: MergeType, depth: number): JsonValue {
  checkMergeDepth(depth);
  const { map, list } = type;
  switch (kindFor(type, value) ?? anyKindOf(type)) {
    case 'map':
      return isJsonObject(value) && map !== undefined && !map.isAtomic ? fromMap(value, fields, map, depth) : null;
    case 'list':
      return Array.isArray(value) && list !== undefined && !list.isAtomic ? fromList(value, fields, list, depth) : null;
    default:
      return value;
  }
}

function fromMap(object: JsonObject, fields: FieldSet, map: MapType, depth: number): JsonObject | null {
  const entries: (readonly [string, JsonValue])[] = [];
  let isChanged = false;
  for (const [name, value] of Object.entries(object)) {
    const element = fieldElement(name);
    if (fields.hasElement(element)) {
      isChanged = true;
      continue;
    }
    const below = fields.below(element);
    const type = map.field(name);
    const kept = below === undefined || type === undefined ? value : removed(value, below, type, depth + 1);
    isChanged ||= kept !== value;
    entries.push([name, kept]);
  }
  return entries.length === 0 ? null : isChanged ? Object.fromEntries(entries) : object;
}

function fromList(values: JsonValue[], fields: FieldSet, list: ListType, depth: number): JsonValue[] | null {
  const kept: JsonValue[] = [];
  let isChanged = false;
  for (const [index, value] of values.entries()) {
    const element = elementOf(list, value, index);
    if (fields.hasElement(element)) {
      isChanged = true;
      continue;
    }
    const below = fields.below(element);
    const rest = below === undefined ? value : removed(value, below, list.element(), depth + 1);
    isChanged ||= rest !== value;
    kept.push(rest);
  }
  return kept.length === 0 ? null : isChanged ? kept : values;
}

/** Adds the declared fields above each path of a set, so that they are removed when they become empty. */
export function withNamedFields(fields: FieldSet, type: MergeType | undefined): FieldSet {
  const result = new FieldSet();
  for (const { element, isMember, children } of fields.nodes()) {
    const isNamed = element.kind === 'field' && type?.map?.isNamed(element.name) === true;
    const below =
      element.kind === 'field'
        ? type?.map?.field(element.name)
        : element.kind === 'key'
          ? type?.list?.element()
          : undefined;
    const isMemberNow = isMember || (isNamed && children !== undefined);
    result.put(element, isMemberNow, children === undefined ? undefined : withNamedFields(children, below));
  }
  return result;
}
