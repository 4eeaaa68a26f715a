import { isJsonObject } from '../../values/index.ts';
import type { JsonValue } from '../../values/index.ts';
import { withObjectMeta } from '../object-meta-schema.ts';
import type { Schema } from '../schema.ts';

export type ScalarType = 'numeric' | 'string' | 'boolean' | 'untyped';

/** The types that a value may have for merging: one, or several where the schema leaves it open. */
export interface MergeType {
  readonly scalar?: ScalarType;
  readonly list?: ListType;
  readonly map?: MapType;
}

export interface ListType {
  /** An atomic list is one value; elements of other lists have their own owners. */
  readonly isAtomic: boolean;
  /** Key fields of elements; empty in sets of scalars. */
  readonly keys: readonly string[];
  element(): MergeType;
}

export interface MapType {
  readonly isAtomic: boolean;
  /** Whether any fields are allowed, with types deduced from their values. */
  readonly isDeduced: boolean;
  /** Whether the schema names the field. */
  isNamed(field: string): boolean;
  /** The type of a field; undefined for unknown fields. */
  field(name: string): MergeType | undefined;
  /** The default of a field. */
  defaultOf(name: string): JsonValue | undefined;
}

/** Names of the kinds of values. */
export type ValueKind = 'map' | 'scalar' | 'list';

const NOTHING = { isNamed: () => false, defaultOf: () => undefined } as const;

/** Any value, treated as atomic. */
const UNTYPED: MergeType = {
  scalar: 'untyped',
  list: { isAtomic: true, keys: [], element: () => UNTYPED },
  map: { ...NOTHING, isAtomic: true, isDeduced: false, field: () => UNTYPED },
};

/** Any value; maps are merged, lists are atomic. For values without a schema. */
const DEDUCED_TYPE: MergeType = {
  scalar: 'untyped',
  list: { isAtomic: true, keys: [], element: () => UNTYPED },
  map: { ...NOTHING, isAtomic: false, isDeduced: true, field: () => DEDUCED_TYPE },
};

/** The type of a kind's whole objects, with the metadata of Kubernetes where the schema lacks them. */
export function mergeTypeOf(schema: Schema): MergeType {
  return typeOf(withMetadata(schema), false);
}

/** Adds the schema of metadata, which custom kinds omit. */
function withMetadata(schema: Schema): Schema {
  const { properties = {} } = schema;
  const metadata = sole(Object.hasOwn(properties, 'metadata') ? properties['metadata'] : undefined);
  const isKnown = metadata?.properties !== undefined && Object.hasOwn(metadata.properties, 'managedFields');
  return isKnown ? schema : withObjectMeta(schema);
}

function typeOf(schema: Schema, isOpen: boolean): MergeType {
  const only = sole(schema);
  if (only !== undefined && only !== schema) {
    const mapType = schema['x-kubernetes-map-type'];
    return typeOf(mapType === undefined ? only : { ...only, 'x-kubernetes-map-type': mapType }, isOpen);
  }
  if (schema['x-kubernetes-embedded-resource'] === true) {
    return typeOf({ ...withMetadata(schema), 'x-kubernetes-embedded-resource': false }, isOpen);
  }
  const isOpenBelow = isOpen || schema['x-kubernetes-preserve-unknown-fields'] === true;
  switch (schema.type) {
    case undefined:
      return { scalar: 'untyped', list: listOf(schema, isOpenBelow), map: mapOf(schema, isOpenBelow) };
    case 'object':
      return { map: mapOf(schema, isOpenBelow) };
    case 'array':
      return { list: listOf(schema, isOpenBelow) };
    case 'integer':
    case 'number':
      return { scalar: 'numeric' };
    case 'boolean':
      return { scalar: 'boolean' };
    default:
      return { scalar: schema.format === undefined || schema.format === 'byte' ? 'string' : 'untyped' };
  }
}

/** A shared schema wrapped to add a description or a default. */
function sole(schema: Schema | undefined): Schema | undefined {
  const [only, ...others] = schema?.allOf ?? [];
  const isWrapper =
    schema?.type === undefined && schema?.properties === undefined && only !== undefined && others.length === 0;
  return isWrapper ? only : schema;
}

function mapOf(schema: Schema, isOpen: boolean): MapType {
  const { properties = {}, additionalProperties } = schema;
  const types = new Map<string, MergeType>();
  let other: MergeType | undefined;
  if (isJsonObject(additionalProperties)) {
    other = typeOf(additionalProperties, isOpen);
  } else if (additionalProperties ?? (isOpen || Object.keys(properties).length === 0)) {
    other = DEDUCED_TYPE;
  }
  const own = (name: string): Schema | undefined => (Object.hasOwn(properties, name) ? properties[name] : undefined);
  return {
    isAtomic: schema['x-kubernetes-map-type'] === 'atomic',
    isDeduced: other === DEDUCED_TYPE && Object.keys(properties).length === 0,
    isNamed: (name) => Object.hasOwn(properties, name),
    defaultOf: (name) => own(name)?.default as JsonValue | undefined,
    field(name) {
      const property = own(name);
      if (property === undefined) {
        return other;
      }
      let type = types.get(name);
      if (type === undefined) {
        type = typeOf(property, isOpen);
        types.set(name, type);
      }
      return type;
    },
  };
}

function listOf(schema: Schema, isOpen: boolean): ListType {
  const { items } = schema;
  let type: MergeType | undefined = items === undefined ? UNTYPED : undefined;
  return {
    ...relationOf(schema),
    element: () => (type ??= items === undefined ? UNTYPED : typeOf(items, isOpen)),
  };
}

function relationOf(schema: Schema): Pick<ListType, 'isAtomic' | 'keys'> {
  switch (schema['x-kubernetes-list-type']) {
    case 'atomic':
      return { isAtomic: true, keys: [] };
    case 'set':
      return { isAtomic: false, keys: [] };
    case 'map':
      return { isAtomic: false, keys: schema['x-kubernetes-list-map-keys'] ?? [] };
    default: {
      // Builtin kinds with extensions for strategic merge patches only.
      const isMerged = schema['x-kubernetes-patch-strategy']?.split(',').includes('merge') === true;
      const key = schema['x-kubernetes-patch-merge-key'];
      return { isAtomic: !isMerged, keys: isMerged && key !== undefined ? [key] : [] };
    }
  }
}

/** The kind of a JSON value; undefined for null. */
function valueKindOf(value: JsonValue): ValueKind | undefined {
  return value === null ? undefined : Array.isArray(value) ? 'list' : isJsonObject(value) ? 'map' : 'scalar';
}

/** The kind of a type for a value: the value's if the type allows it, or the type's only one. */
export function kindFor(type: MergeType, value: JsonValue | undefined): ValueKind | undefined {
  const own = value === undefined ? undefined : valueKindOf(value);
  if (own !== undefined && type[own] !== undefined) {
    return own;
  }
  const isOpen =
    Number(type.map !== undefined) + Number(type.scalar !== undefined) + Number(type.list !== undefined) > 1;
  return isOpen ? undefined : anyKindOf(type);
}

/** The kind of a type when the value does not determine it: a map if possible. */
export function anyKindOf(type: MergeType): ValueKind {
  return type.map !== undefined ? 'map' : type.scalar !== undefined ? 'scalar' : 'list';
}
