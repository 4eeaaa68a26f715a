// Builds the structural schemas of our own kinds. The types of their values are inferred.
import type { JsonObject, JsonValue } from '../values/index.ts';
import type { Schema, ValidationRule } from './schema.ts';

/** A schema, with the type of its values for the compiler. */
export interface TypedSchema<T> extends Schema {
  /** Never set. */
  readonly _value?: T;
}

/** A field that need not be there. */
export interface OptionalField<T> {
  readonly presence: 'optional';
  readonly schema: TypedSchema<T>;
}

/** A field with a default of the server. */
export interface DefaultedField<T> {
  readonly presence: 'defaulted';
  readonly schema: TypedSchema<T>;
}

type Field = TypedSchema<unknown> | OptionalField<unknown> | DefaultedField<unknown>;
type Fields = Readonly<Record<string, Field>>;

/** The type of a schema's values in a cluster, with defaults applied. */
export type Infer<S> =
  S extends OptionalField<infer T>
    ? T
    : S extends DefaultedField<infer T>
      ? T
      : S extends TypedSchema<infer T>
        ? T
        : never;

type OptionalNames<F extends Fields> = {
  [Name in keyof F]: F[Name] extends OptionalField<unknown> ? Name : never;
}[keyof F];

/** The type of an object with these fields. */
export type ObjectOf<F extends Fields> = {
  readonly [Name in Exclude<keyof F, OptionalNames<F>>]: Infer<F[Name]>;
} & { readonly [Name in OptionalNames<F>]?: Infer<F[Name]> };

/** Further keywords of a schema. */
type Extra<T> = Omit<Schema, 'type' | 'properties' | 'items' | 'required' | 'default' | 'x-kubernetes-validations'> & {
  readonly default?: T;
  readonly rules?: readonly ValidationRule[];
};

export function text(description: string, extra: Extra<string> = {}): TypedSchema<string> {
  return typed('string', description, extra);
}

/** One of several texts. */
export function choice<const T extends string>(description: string, values: readonly T[]): TypedSchema<T> {
  return { ...typed<T>('string', description, {}), enum: values };
}

export function integer(description: string, extra: Extra<number> = {}): TypedSchema<number> {
  return { format: 'int32', ...typed<number>('integer', description, extra) };
}

export function flag(description: string): TypedSchema<boolean> {
  return typed('boolean', description, {});
}

/** RFC 3339, whole seconds. */
export function time(description: string): TypedSchema<string> {
  return { ...text(description), format: 'date-time' };
}

/** `1`, `"50%"`, `"100Mi"`. */
export function integerOrText(description: string, extra: Extra<number | string> = {}): TypedSchema<number | string> {
  const { rules: _rules, ...others } = extra;
  return {
    description,
    anyOf: [{ type: 'integer' }, { type: 'string' }],
    'x-kubernetes-int-or-string': true,
    ...others,
  };
}

/** An object with any content. */
export function anything(description: string): TypedSchema<JsonObject> {
  return { ...typed<JsonObject>('object', description, {}), 'x-kubernetes-preserve-unknown-fields': true };
}

export function list<T>(
  description: string,
  items: TypedSchema<T>,
  extra: Extra<readonly T[]> = {},
): TypedSchema<readonly T[]> {
  return { ...typed<readonly T[]>('array', description, extra), items };
}

/** A list whose elements have keys, by which server-side apply merges them. */
export function listByKey<T>(
  description: string,
  keys: readonly (keyof T & string)[],
  items: TypedSchema<T>,
  extra: Extra<readonly T[]> = {},
): TypedSchema<readonly T[]> {
  return {
    ...list(description, items, extra),
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': keys,
  };
}

/** Any keys, with values of one type. */
export function entries<T>(
  description: string,
  values: TypedSchema<T>,
  extra: Extra<Readonly<Record<string, T>>> = {},
): TypedSchema<Readonly<Record<string, T>>> {
  return { ...typed<Readonly<Record<string, T>>>('object', description, extra), additionalProperties: values };
}

export function object<F extends Fields>(
  description: string,
  fields: F,
  extra: Extra<ObjectOf<F>> = {},
): TypedSchema<ObjectOf<F>> {
  const properties: Record<string, Schema> = {};
  const required: string[] = [];
  for (const [name, field] of Object.entries(fields)) {
    if ('presence' in field) {
      properties[name] = field.schema;
    } else {
      properties[name] = field;
      required.push(name);
    }
  }
  return {
    ...typed<ObjectOf<F>>('object', description, extra),
    ...(required.length === 0 ? {} : { required }),
    // API servers leave out an empty mapping.
    ...(Object.keys(properties).length === 0 ? {} : { properties }),
  };
}

export function optional<T>(schema: TypedSchema<T>): OptionalField<T> {
  return { presence: 'optional', schema };
}

export function defaulted<T>(schema: TypedSchema<T>, value: T & JsonValue): DefaultedField<T> {
  return { presence: 'defaulted', schema: { ...schema, default: value } };
}

/** A value that may also be null. */
export function nullable<T>(schema: TypedSchema<T>): TypedSchema<T | null> {
  return { ...(schema as Schema), nullable: true };
}

function typed<T>(
  type: NonNullable<Schema['type']>,
  description: string,
  { rules, ...extra }: Extra<T>,
): TypedSchema<T> {
  return { description, type, ...extra, ...(rules === undefined ? {} : { 'x-kubernetes-validations': rules }) };
}
