import { jsonText } from '../../../go/index.ts';
import { addErrors, forbidden, invalid, invalidText, notSupported, required } from '../../../resources/index.ts';
import type { FieldError, Schema } from '../../../resources/index.ts';

const LIST_TYPES = ['atomic', 'set', 'map'];
const MAP_TYPES = ['atomic', 'granular'];

/** Validates `x-kubernetes-list-type`, `-list-map-keys` and `-map-type` of a schema. */
export function listTypeErrors(schema: Schema, path: string): FieldError[] {
  return [...mapTypeErrors(schema, path), ...typeErrors(schema, path), ...keysErrors(schema, path)];
}

function mapTypeErrors(schema: Schema, path: string): FieldError[] {
  const mapType = schema['x-kubernetes-map-type'];
  if (mapType === undefined) {
    return [];
  }
  const known = MAP_TYPES.includes(mapType) ? [] : [notSupported(`${path}.x-kubernetes-map-type`, mapType, MAP_TYPES)];
  const why = 'must be object if x-kubernetes-map-type is specified';
  return [...typeError(schema, 'object', path, why), ...known];
}

function typeErrors(schema: Schema, path: string): FieldError[] {
  const listType = schema['x-kubernetes-list-type'];
  const { items } = schema;
  if (listType === undefined) {
    return [];
  }
  const errors = typeError(schema, 'array', path, 'must be array if x-kubernetes-list-type is specified');
  if (!LIST_TYPES.includes(listType)) {
    errors.push(notSupported(`${path}.x-kubernetes-list-type`, listType, LIST_TYPES));
  }
  if (errors.length === 0 && listType === 'set' && items !== undefined) {
    errors.push(...setItemErrors(items, `${path}.items`));
  }
  if (listType !== 'atomic' && items?.nullable === true) {
    errors.push(forbidden(`${path}.items.nullable`, `cannot be nullable when x-kubernetes-list-type is ${listType}`));
  }
  return errors;
}

function setItemErrors(items: Schema, path: string): FieldError[] {
  const why = 'must be atomic as item of a list with x-kubernetes-list-type=set';
  const [listType, mapType] = [items['x-kubernetes-list-type'], items['x-kubernetes-map-type']];
  if (items.type === 'array' && listType !== undefined && listType !== 'atomic') {
    return [invalid(`${path}.x-kubernetes-list-type`, listType, why)];
  }
  // API servers print the list type in this message, although the map type is wrong.
  return items.type === 'object' && mapType !== 'atomic'
    ? [invalid(`${path}.x-kubernetes-map-type`, listType ?? null, why)]
    : [];
}

function keysErrors(schema: Schema, path: string): FieldError[] {
  const listType = schema['x-kubernetes-list-type'];
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  const { items } = schema;
  const errors: FieldError[] = [];
  if (keys.length > 0 && listType !== 'map') {
    const why = 'must be map if x-kubernetes-list-map-keys is non-empty';
    const field = `${path}.x-kubernetes-list-type`;
    errors.push(listType === undefined ? required(field, why) : invalid(field, listType, why));
  }
  if (listType !== 'map') {
    return errors;
  }
  if (keys.length === 0) {
    const why = 'must not be empty if x-kubernetes-list-type is map';
    errors.push(required(`${path}.x-kubernetes-list-map-keys`, why));
  }
  if (items === undefined) {
    errors.push(required(`${path}.items`, 'must have a schema if x-kubernetes-list-type is map'));
  } else if (items.type !== 'object') {
    const why = "must be object if parent array's x-kubernetes-list-type is map";
    errors.push(invalid(`${path}.items.type`, items.type ?? '', why));
  } else {
    const first = new Map(keys.toReversed().map((key, index) => [key, keys.length - 1 - index]));
    const requiredKeys = new Set(items.required);
    const shown = jsonText(keys);
    const keyErrorsOf = (key: string, index: number): FieldError[] =>
      keyErrors(key, { items, path, shown, isRequired: requiredKeys.has(key), isDuplicate: first.get(key) !== index });
    addErrors(errors, keys.flatMap(keyErrorsOf));
  }
  return errors;
}

/** A key of `x-kubernetes-list-map-keys`, for validation. */
interface Key {
  readonly items: Schema;
  readonly path: string;
  /** All keys, for messages. */
  readonly shown: string;
  /** Whether the property of the key is required. */
  readonly isRequired: boolean;
  readonly isDuplicate: boolean;
}

function keyErrors(key: string, { items, path, shown, isRequired, isDuplicate }: Key): FieldError[] {
  const errors: FieldError[] = [];
  const { properties = {} } = items;
  const property = Object.hasOwn(properties, key) ? properties[key] : undefined;
  const at = `${path}.items.properties[${key}]`;
  if (property === undefined) {
    errors.push(
      invalidText(`${path}.x-kubernetes-list-map-keys`, shown, 'entries must all be names of item properties'),
    );
  } else if (property.type === 'array' || property.type === 'object') {
    const why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
    errors.push(invalid(`${at}.type`, items.type ?? '', why));
  }
  if (isDuplicate) {
    errors.push(invalidText(`${path}.x-kubernetes-list-map-keys`, shown, 'must not contain duplicate entries'));
  }
  if (property !== undefined && !isRequired && property.default === undefined) {
    const why = 'this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property';
    errors.push(required(`${at}.default`, why));
  }
  if (property?.nullable === true) {
    errors.push(
      forbidden(`${at}.nullable`, 'this property is in x-kubernetes-list-map-keys, so it cannot be nullable'),
    );
  }
  return errors;
}

function typeError({ type }: Schema, expected: string, path: string, why: string): FieldError[] {
  if (type === expected) {
    return [];
  }
  return [type === undefined ? required(`${path}.type`, why) : invalid(`${path}.type`, type, why)];
}
