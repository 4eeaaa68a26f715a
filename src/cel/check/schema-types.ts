import { RESERVED_WORDS } from '../syntax/index.ts';
import { BOOL, BYTES, DOUBLE, DURATION, DYN, INT, listOf, mapOf, STRING, struct, TIMESTAMP } from '../model/type.ts';
import type { CelType } from '../model/type.ts';
import type { SizeEstimator } from './cost-estimate.ts';
import type { TypeProvider } from './declarations.ts';
import { escapeField } from './field-escaping.ts';
import { MAX_REQUEST_BYTES, MAX_SCHEMA_DEPTH } from './limits.ts';

/**
 * The supported part of a structural OpenAPI v3 schema: of a CustomResourceDefinition, or published by an API server
 * (https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/).
 */
export interface StructuralSchema {
  readonly type?: string;
  readonly format?: string;
  readonly properties?: Readonly<Record<string, StructuralSchema>>;
  readonly required?: readonly string[];
  readonly items?: StructuralSchema;
  readonly additionalProperties?: StructuralSchema | boolean;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly maxItems?: number;
  readonly maxLength?: number;
  readonly maxProperties?: number;
  readonly $ref?: string;
  readonly allOf?: readonly StructuralSchema[];
  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-embedded-resource'?: boolean;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
}

interface SchemaTypesOptions {
  /** Resolves a `$ref`. A field with an unresolved reference does not exist. */
  readonly resolve?: (reference: string) => StructuralSchema | undefined;
  /**
   * Spelling of field names in expressions: `escaped` (`__namespace__`) as in API servers, for values of the schema's
   * type; `plain` for values that are plain JSON, where only the checker knows the schema. Default: escaped.
   */
  readonly fieldNames?: 'escaped' | 'plain';
}

/** A type with the size limits of its values. */
interface DeclaredType {
  readonly type: CelType;
  /** Maximum number of elements, entries, characters or bytes; 0 if the type has no size. */
  readonly maxElements: number;
  /** Type of the elements, or of the values of entries. */
  readonly element?: DeclaredType;
  readonly fields?: StructFields;
}

/** Sizes of JSON values in bytes (apiserver, `pkg/cel/limits.go`). Those of times include quotes. */
const MIN_STRING_SIZE = 2;
const MIN_CONTAINER_SIZE = 2;
const MIN_BOOL_SIZE = 4;
const MIN_NUMBER_SIZE = 1;
const MIN_DURATION_SIZE = 3;
const MAX_DURATION_SIZE = 32;
const DATE_SIZE = 12;
const MIN_DATETIME_SIZE = 21;
const MAX_DATETIME_SIZE = 32;

const MIN_TEXT_SIZES: ReadonlyMap<string, number> = new Map([
  ['duration', MIN_DURATION_SIZE],
  ['date', DATE_SIZE],
  ['date-time', MIN_DATETIME_SIZE],
]);

/** Length of a string that fills a request. */
const MAX_STRING_LENGTH = MAX_REQUEST_BYTES - 2;
/** `maxLength` counts code points, sizes count bytes. */
const MAX_BYTES_OF_CODE_POINT = 4;

const METADATA: StructuralSchema = {
  type: 'object',
  properties: { name: { type: 'string' }, generateName: { type: 'string' } },
};

/** The fields of a struct, declared on first use: schemas are large and can be recursive. */
class StructFields {
  readonly #schemas = new Map<string, StructuralSchema>();
  readonly #declared = new Map<string, DeclaredType | undefined>();
  readonly #declare: (schema: StructuralSchema, field: string) => DeclaredType | undefined;

  constructor(
    schema: StructuralSchema,
    spell: (property: string) => string | undefined,
    declare: (schema: StructuralSchema, field: string) => DeclaredType | undefined,
  ) {
    this.#declare = declare;
    for (const [property, propertySchema] of Object.entries(schema.properties ?? {})) {
      const field = spell(property);
      if (field !== undefined) {
        this.#schemas.set(field, propertySchema);
      }
    }
  }

  get(field: string): DeclaredType | undefined {
    const schema = this.#schemas.get(field);
    if (schema !== undefined && !this.#declared.has(field)) {
      this.#declared.set(field, this.#declare(schema, field));
    }
    return this.#declared.get(field);
  }

  names(): readonly string[] {
    return [...this.#schemas.keys()].filter((field) => this.get(field) !== undefined);
  }
}

/** Types from schemas, by the rules of API servers (apiserver, `SchemaDeclType`). */
export class SchemaTypes implements TypeProvider {
  readonly #options: SchemaTypesOptions;
  readonly #roots = new Map<string, DeclaredType>();
  readonly #structs = new Map<string, DeclaredType>();
  /** Minimum sizes of values by schema; undefined while one is being computed. */
  readonly #minSizes = new Map<StructuralSchema, number | undefined>();

  constructor(options: SchemaTypesOptions = {}) {
    this.#options = options;
  }

  /**
   * Declares the type of a schema under a name such as `Pod`; nested structs are named by their path
   * (`Pod.spec.containers.@idx`). Returns undefined for schemas without a CEL type.
   * @param isResource whether the schema has `apiVersion`, `kind` and `metadata` even if it does not declare them
   */
  declare(name: string, schema: StructuralSchema, isResource = false): CelType | undefined {
    const declared = this.#declare(schema, name, isResource, 0);
    if (declared !== undefined) {
      this.#roots.set(name, declared);
    }
    return declared?.type;
  }

  readonly findStruct = (name: string): CelType | undefined => this.#structOf(name)?.type;

  readonly fieldType = (structName: string, field: string): CelType | undefined => {
    const fields = this.#structOf(structName)?.fields;
    // API servers also accept reserved words unescaped.
    const declared = fields?.get(field) ?? (RESERVED_WORDS.has(field) ? fields?.get(`__${field}__`) : undefined);
    return declared?.type;
  };

  readonly fieldNames = (structName: string): readonly string[] => this.#structOf(structName)?.fields?.names() ?? [];

  readonly mayQualify = (firstWord: string): boolean => this.#roots.has(firstWord);

  /**
   * Sizes for the only variable, whose type has this name. As in API servers, the first step of a path is ignored, so
   * results of macros have the size of the variable's fields.
   */
  sizesOf(name: string): SizeEstimator {
    return ([, ...steps]) => {
      const declared = steps.reduce(stepInto, this.#roots.get(name));
      return declared === undefined ? undefined : { min: 0, max: declared.maxElements };
    };
  }

  /** The struct with a name: a root, or one that fields of a root lead to. */
  #structOf(name: string): DeclaredType | undefined {
    const known = this.#structs.get(name);
    if (known !== undefined) {
      return known;
    }
    const [root = '', ...steps] = name.split('.');
    const declared = steps.reduce(
      (current, step) => (step === '@idx' || step === '@elem' ? current?.element : current?.fields?.get(step)),
      this.#roots.get(root),
    );
    return declared?.fields === undefined ? undefined : declared;
  }

  #declare(given: StructuralSchema, name: string, isResource: boolean, depth: number): DeclaredType | undefined {
    const schema = this.#dereference(given);
    if (schema === undefined || depth > MAX_SCHEMA_DEPTH) {
      return undefined;
    }
    if (schema['x-kubernetes-int-or-string'] === true) {
      return { type: DYN, maxElements: schema.maxLength === undefined ? MAX_STRING_LENGTH : bytesOf(schema.maxLength) };
    }
    switch (schema.type) {
      case 'array':
        return this.#declareList(schema, name, depth);
      case 'object':
        return this.#declareObject(isResource ? withMetadata(schema) : schema, name, depth);
      case 'string':
        return declareString(schema);
      case 'boolean':
        return { type: BOOL, maxElements: 0 };
      case 'number':
        return { type: DOUBLE, maxElements: 0 };
      case 'integer':
        return { type: INT, maxElements: 0 };
      default:
        return undefined;
    }
  }

  /** Resolves a reference. API servers publish a reference with a default as `allOf` with one element. */
  #dereference(schema: StructuralSchema): StructuralSchema | undefined {
    let current: StructuralSchema | undefined = schema;
    for (let followed = 0; followed < MAX_SCHEMA_DEPTH && current !== undefined; followed += 1) {
      const reference: string | undefined =
        current.$ref ?? (current.allOf?.length === 1 ? current.allOf[0]?.$ref : undefined);
      if (reference === undefined) {
        return current;
      }
      current = this.#options.resolve?.(reference);
    }
    return undefined;
  }

  #declareList(schema: StructuralSchema, name: string, depth: number): DeclaredType | undefined {
    const { items, maxItems } = schema;
    const element = items === undefined ? undefined : this.#declareNested(items, `${name}.@idx`, depth + 1);
    if (items === undefined || element === undefined) {
      return undefined;
    }
    // Two brackets, and a comma per element.
    const fitting = (): number => Math.trunc((MAX_REQUEST_BYTES - 2) / (this.#minSizeOf(items) + 1));
    const maxElements = maxItems === undefined ? fitting() : Math.max(0, maxItems);
    return { type: listOf(element.type), element, maxElements };
  }

  #declareNested(schema: StructuralSchema, name: string, depth: number): DeclaredType | undefined {
    return this.#declare(schema, name, isEmbedded(schema), depth);
  }

  #declareObject(schema: StructuralSchema, name: string, depth: number): DeclaredType | undefined {
    const { additionalProperties, maxProperties } = schema;
    if (typeof additionalProperties !== 'object') {
      return this.#declareStruct(schema, name);
    }
    const element = this.#declareNested(additionalProperties, `${name}.@elem`, depth + 1);
    if (element === undefined) {
      return undefined;
    }
    // Two braces; per entry two quotes, a short key, a colon and a comma.
    const fitting = (): number => Math.trunc((MAX_REQUEST_BYTES - 2) / (this.#minSizeOf(additionalProperties) + 6));
    const maxElements = maxProperties === undefined ? fitting() : Math.max(0, maxProperties);
    return { type: mapOf(STRING, element.type), element, maxElements };
  }

  #declareStruct(schema: StructuralSchema, name: string): DeclaredType {
    const spell = this.#options.fieldNames === 'plain' ? (property: string) => property : escapeField;
    const fields = new StructFields(schema, spell, (fieldSchema, field) =>
      this.#declareNested(fieldSchema, `${name}.${field}`, 0),
    );
    const declared = { type: struct(name), fields, maxElements: 0 };
    this.#structs.set(name, declared);
    return declared;
  }

  /** Minimum size of a value in JSON bytes. A recursive requirement counts as 0. */
  #minSizeOf(given: StructuralSchema): number {
    const schema = this.#dereference(given);
    if (schema === undefined) {
      return MIN_CONTAINER_SIZE;
    }
    if (!this.#minSizes.has(schema)) {
      this.#minSizes.set(schema, undefined);
      this.#minSizes.set(schema, this.#findMinSize(schema));
    }
    return this.#minSizes.get(schema) ?? MIN_CONTAINER_SIZE;
  }

  #findMinSize(schema: StructuralSchema): number {
    if (schema['x-kubernetes-int-or-string'] === true) {
      return MIN_NUMBER_SIZE;
    }
    switch (schema.type) {
      case 'string':
        return MIN_TEXT_SIZES.get(schema.format ?? '') ?? MIN_STRING_SIZE;
      case 'boolean':
        return MIN_BOOL_SIZE;
      case 'number':
      case 'integer':
        return MIN_NUMBER_SIZE;
      case 'object':
        return typeof schema.additionalProperties === 'object' ? MIN_CONTAINER_SIZE : this.#minStructSize(schema);
      default:
        return MIN_CONTAINER_SIZE;
    }
  }

  /** Required fields without a default, with their quotes, colon and comma. */
  #minStructSize(schema: StructuralSchema): number {
    const { properties = {} } = isEmbedded(schema) ? withMetadata(schema) : schema;
    let size = MIN_CONTAINER_SIZE;
    for (const property of new Set(schema.required)) {
      const field = Object.hasOwn(properties, property) ? properties[property] : undefined;
      if (field !== undefined && field.default === undefined && escapeField(property) !== undefined) {
        size += Buffer.byteLength(property) + this.#minSizeOf(field) + 4;
      }
    }
    return size;
  }
}

function isEmbedded(schema: StructuralSchema): boolean {
  return schema['x-kubernetes-embedded-resource'] === true;
}

function stepInto(type: DeclaredType | undefined, step: string): DeclaredType | undefined {
  switch (step) {
    case '@items':
    case '@values':
      return type?.element;
    case '@keys':
      return type?.type.kind === 'map' ? { type: STRING, maxElements: 0 } : undefined;
    default:
      return type?.fields?.get(step);
  }
}

/** Roots of resources always have these fields. */
function withMetadata(schema: StructuralSchema): StructuralSchema {
  const { properties = {} } = schema;
  const metadata = properties['metadata'];
  const isComplete =
    properties['kind']?.type === 'string' &&
    properties['apiVersion']?.type === 'string' &&
    metadata?.type === 'object' &&
    metadata.properties?.['name']?.type === 'string' &&
    metadata.properties['generateName']?.type === 'string';
  if (isComplete) {
    return schema;
  }
  const text: StructuralSchema = { type: 'string' };
  return { ...schema, properties: { ...properties, kind: text, apiVersion: text, metadata: METADATA } };
}

function declareString(schema: StructuralSchema): DeclaredType {
  switch (schema.format) {
    case 'byte': {
      const maxElements = schema.maxLength === undefined ? MAX_STRING_LENGTH : Math.max(0, schema.maxLength);
      return { type: BYTES, maxElements };
    }
    case 'duration':
      return { type: DURATION, maxElements: MAX_DURATION_SIZE };
    case 'date':
      return { type: TIMESTAMP, maxElements: DATE_SIZE };
    case 'date-time':
      return { type: TIMESTAMP, maxElements: MAX_DATETIME_SIZE };
    default:
      return { type: STRING, maxElements: maxStringLength(schema) };
  }
}

function maxStringLength(schema: StructuralSchema): number {
  if (schema.maxLength !== undefined) {
    return bytesOf(schema.maxLength);
  }
  if (schema.enum === undefined || schema.enum.length === 0) {
    return MAX_STRING_LENGTH;
  }
  const lengths = schema.enum.map((value) => (typeof value === 'string' ? Buffer.byteLength(value) : 0));
  return Math.max(...lengths);
}

function bytesOf(maxLength: number): number {
  return Math.max(0, maxLength) * MAX_BYTES_OF_CODE_POINT;
}
