import { BOOL, DYN, INT, listOf, mapOf, STRING, struct } from '../model/type.ts';
import type { CelType } from '../model/type.ts';
import type { TypeProvider } from './declarations.ts';
import { MAX_SCHEMA_DEPTH } from './limits.ts';
import type { StructuralSchema } from './schema-types.ts';
import type { JsonStructs } from './unification.ts';

/** Maximum number of schemas in the union of struct types; more become `dyn`. Ternaries and lists mix two or three. */
const MAX_UNITED = 8;

/** Separates the names of united types. Names of types cannot contain it. */
const UNION = ' | ';

/** A reference in published schemas: `#/components/schemas/io.k8s.api.core.v1.PodSpec`. */
const COMPONENT = /([^/.]+)$/;

export interface ObjectTypesOptions {
  /** Resolves a `$ref`. What has an unresolved reference may be anything. */
  readonly resolve: (reference: string) => StructuralSchema | undefined;
  /** The schema of `metadata`, which custom kinds need not declare. */
  readonly metadata: StructuralSchema;
}

/**
 * Types of objects as evaluation sees them, from schemas that an API server publishes: JSON, in which times, quantities and
 * base64 are strings. What a schema leaves open is `dyn`, so that each error is one. Unlike types of SchemaTypes, which follow
 * API servers, two fields with the same schema have the same type.
 */
export class ObjectTypes implements TypeProvider {
  readonly #options: ObjectTypesOptions;
  readonly #schemas = new Map<string, StructuralSchema>();
  readonly #names = new Map<StructuralSchema, string>();

  constructor(options: ObjectTypesOptions) {
    this.#options = options;
  }

  /** The type of objects of a kind. @param name of the type in messages, such as `Pod` */
  declareKind(name: string, schema: StructuralSchema): CelType {
    return this.#typeOf(withMetadata(schema, this.#options.metadata), name, 0);
  }

  readonly findStruct = (name: string): CelType | undefined =>
    name.split(UNION).every((one) => this.#schemas.has(one)) ? struct(name) : undefined;

  readonly fieldType = (name: string, field: string): CelType | undefined => {
    const types = name.split(UNION).flatMap((one) => this.#fieldOf(one, field) ?? []);
    const [first, ...others] = types;
    return first === undefined ? undefined : others.reduce((all, type) => this.#join(all, type), first);
  };

  readonly fieldNames = (name: string): readonly string[] => [
    ...new Set(name.split(UNION).flatMap((one) => Object.keys(this.#schemas.get(one)?.properties ?? {}))),
  ];

  /** Expressions cannot name these types. */
  readonly mayQualify = (): boolean => false;

  readonly json: JsonStructs = {
    isJson: (name) => this.findStruct(name) !== undefined,
    unite: (left, right) => this.#unite(left, right),
  };

  #unite(left: string, right: string): CelType {
    const names = [...new Set([...left.split(UNION), ...right.split(UNION)])].sort();
    return names.length > MAX_UNITED ? DYN : struct(names.join(UNION));
  }

  #join(left: CelType, right: CelType): CelType {
    if (left.kind === 'struct' && right.kind === 'struct') {
      return this.#unite(left.name, right.name);
    }
    if (left.kind === 'list' && right.kind === 'list') {
      return listOf(this.#join(left.element, right.element));
    }
    if (left.kind === 'map' && right.kind === 'map') {
      return mapOf(STRING, this.#join(left.value, right.value));
    }
    return left.kind === right.kind ? left : DYN;
  }

  #fieldOf(name: string, field: string): CelType | undefined {
    const schema = this.#schemas.get(name);
    const properties = schema?.properties;
    if (properties !== undefined && Object.hasOwn(properties, field)) {
      const property = properties[field];
      return property === undefined ? undefined : this.#typeOf(property, `${name}.${field}`, 0);
    }
    return schema !== undefined && isOpen(schema) ? DYN : undefined;
  }

  #typeOf(given: StructuralSchema, path: string, depth: number): CelType {
    const { schema, name } = this.#dereference(given, path);
    if (schema === undefined || depth > MAX_SCHEMA_DEPTH || schema['x-kubernetes-int-or-string'] === true) {
      return DYN;
    }
    switch (schema.type) {
      case 'array':
        return listOf(schema.items === undefined ? DYN : this.#typeOf(schema.items, `${name}[]`, depth + 1));
      case 'object':
        return this.#objectType(schema, name, depth);
      case 'string':
        return schema.format === INT_OR_STRING ? DYN : STRING;
      case 'boolean':
        return BOOL;
      case 'integer':
        return INT;
      default:
        // A number may be an integer or a double; schemas without a type hold anything.
        return DYN;
    }
  }

  #objectType(given: StructuralSchema, name: string, depth: number): CelType {
    const schema =
      given['x-kubernetes-embedded-resource'] === true ? withMetadata(given, this.#options.metadata) : given;
    const { properties, additionalProperties } = schema;
    if (properties !== undefined && Object.keys(properties).length > 0) {
      return struct(this.#nameOf(given, schema, name));
    }
    return typeof additionalProperties === 'object'
      ? mapOf(STRING, this.#typeOf(additionalProperties, `${name}[]`, depth + 1))
      : DYN;
  }

  /** The name of a schema's type: that of its component, or its path. */
  #nameOf(given: StructuralSchema, schema: StructuralSchema, name: string): string {
    const known = this.#names.get(given);
    if (known !== undefined) {
      return known;
    }
    let free = name;
    for (let next = 2; this.#schemas.has(free); next += 1) {
      free = `${name}#${next}`;
    }
    this.#names.set(given, free);
    this.#schemas.set(free, schema);
    return free;
  }

  /** Resolves a reference, also one with a description or a default beside it. */
  #dereference(
    given: StructuralSchema,
    path: string,
  ): { readonly schema: StructuralSchema | undefined; readonly name: string } {
    let schema: StructuralSchema | undefined = given;
    let name = path;
    for (let followed = 0; followed < MAX_SCHEMA_DEPTH && schema !== undefined; followed += 1) {
      const reference: string | undefined =
        schema.$ref ?? (schema.allOf?.length === 1 ? schema.allOf[0]?.$ref : undefined);
      if (reference === undefined) {
        return { schema, name };
      }
      name = COMPONENT.exec(reference)?.[1] ?? path;
      schema = this.#options.resolve(reference);
    }
    return { schema: undefined, name };
  }
}

const INT_OR_STRING = 'int-or-string';

/** Whether objects may have fields that their schema does not name. */
function isOpen(schema: StructuralSchema): boolean {
  const { additionalProperties } = schema;
  return (
    schema['x-kubernetes-preserve-unknown-fields'] === true ||
    additionalProperties === true ||
    typeof additionalProperties === 'object'
  );
}

/** Objects always have these fields, whatever their schema declares. */
function withMetadata(schema: StructuralSchema, metadata: StructuralSchema): StructuralSchema {
  const text: StructuralSchema = { type: 'string' };
  const { properties = {} } = schema;
  const own = properties['metadata'];
  const isDeclared = own?.$ref !== undefined || own?.allOf !== undefined;
  return {
    ...schema,
    type: 'object',
    properties: { apiVersion: text, kind: text, ...properties, metadata: isDeclared ? own : metadata },
  };
}
