// Validation of structural schemas (apiextensions, `schema/validation.go`, `schema/complete.go` and
// `apis/apiextensions/validation`), with its messages.
import { compilePattern } from '../../../go/patterns/index.ts';
import {
  addErrors,
  forbidden,
  invalid,
  isJsonObject,
  limitErrors,
  notSupported,
  required,
} from '../../../resources/index.ts';
import type { FieldError, JsonValue, Schema } from '../../../resources/index.ts';
import { additionalOf, equalJson, MAX_NESTING, SchemaValidator } from '../../../resources/validation/index.ts';
import { defaultErrors } from './default-validation.ts';
import { listTypeErrors } from './list-type-declarations.ts';
import { RuleDeclarations } from './rule-declarations.ts';
import { SCHEMA_OF_SCHEMAS } from './schema-of-schemas.ts';

const TYPES = ['array', 'boolean', 'integer', 'number', 'object', 'string'];

/** Keywords that API servers reject. */
const UNSUPPORTED: readonly (keyof never | string)[] = [
  'id',
  'additionalItems',
  'patternProperties',
  'definitions',
  'dependencies',
  '$ref',
];

const INT_OR_STRING = [{ type: 'integer' }, { type: 'string' }];

/** The position of a schema node. */
interface NodePosition {
  readonly level: 'root' | 'item' | 'field';
  /** Whether the node is within `metadata`, `kind` or `apiVersion` of an object. */
  readonly isInsideMetadata: boolean;
  /** Why defaults are forbidden, such as `in top-level metadata`. Undefined when they are allowed. */
  readonly noDefaults: string | undefined;
}

/**
 * Validates the schema of a CustomResourceDefinition. It must be structural, its defaults must be valid, and its rules must
 * compile, within the cost limits.
 */
export function checkStructural(schema: unknown, path: string): FieldError[] {
  const shape = new SchemaValidator().validate(schema as JsonValue, SCHEMA_OF_SCHEMAS, path, undefined);
  if (!shape.isValid) {
    return Array.from(shape.problems, ({ error }) => error);
  }
  const root = schema as Schema;
  const checker = new StructuralChecker();
  checker.node(root, path, { level: 'root', isInsideMetadata: false, noDefaults: undefined }, 0);
  const { errors } = checker;
  if (root.nullable === true) {
    errors.unshift(forbidden(`${path}.nullable`, 'nullable cannot be true at the root'));
  }
  if (errors.length === 0) {
    addErrors(errors, defaultErrors(root, path));
  }
  if (errors.length === 0) {
    addErrors(errors, new RuleDeclarations().check(root, path));
  }
  return limitErrors(errors);
}

class StructuralChecker {
  readonly errors: FieldError[] = [];

  node(schema: Schema, path: string, position: NodePosition, depth: number): void {
    if (depth > MAX_NESTING) {
      this.errors.push(forbidden(path, `is nested more than ${MAX_NESTING} levels deep`));
      return;
    }
    this.#keywords(schema, path, position);
    this.#type(schema, path, position);
    this.#extensions(schema, path);
    this.#resource(schema, path, position);
    addErrors(this.errors, listTypeErrors(schema, path));
    this.#children(schema, path, position, depth);
    // As in API servers, fields in alternatives of the root must be declared in the root schema. Others are not checked here.
    const base = position.level === 'root' ? schema : ANY_FIELDS;
    this.#alternatives(schema, base, path, path, depth, {
      isAnyOfSkipped: equalJson(schema.anyOf, INT_OR_STRING),
      isFirstAnyOfSkipped: equalJson(schema.allOf?.[0]?.anyOf, INT_OR_STRING),
    });
  }

  #keywords(schema: Schema, path: string, { noDefaults, isInsideMetadata }: NodePosition): void {
    this.#commonKeywords(schema, path);
    if (schema.default !== undefined && noDefaults !== undefined) {
      this.errors.push(forbidden(`${path}.default`, `must not be set ${noDefaults}`));
    }
    if (isInsideMetadata && schema['x-kubernetes-embedded-resource'] === true) {
      const why = 'must not be used inside of resource meta';
      this.errors.push(forbidden(`${path}.x-kubernetes-embedded-resource`, why));
    }
    if (schema.properties !== undefined && Object.keys(schema.properties).length > 0 && isRestricting(schema)) {
      const why = 'additionalProperties and properties are mutual exclusive';
      this.errors.push(forbidden(`${path}.additionalProperties`, why));
    }
  }

  #commonKeywords(schema: Schema, path: string): void {
    const { type, uniqueItems, pattern } = schema;
    if (type !== undefined && !TYPES.includes(type)) {
      this.errors.push(notSupported(`${path}.type`, type, TYPES));
    }
    if ((type as string | undefined) === 'null') {
      this.errors.push(forbidden(`${path}.type`, 'type cannot be set to null, use nullable as an alternative'));
    }
    for (const keyword of UNSUPPORTED) {
      if (Object.hasOwn(schema, keyword)) {
        this.errors.push(forbidden(`${path}.${String(keyword)}`, `${String(keyword)} is not supported`));
      }
    }
    if (uniqueItems === true) {
      const why = 'uniqueItems cannot be set to true since the runtime complexity becomes quadratic';
      this.errors.push(forbidden(`${path}.uniqueItems`, why));
    }
    if (schema['x-kubernetes-preserve-unknown-fields'] === false) {
      this.errors.push(invalid(`${path}.x-kubernetes-preserve-unknown-fields`, false, 'must be true or undefined'));
    }
    const compiled = pattern === undefined || pattern === '' ? undefined : compilePattern(pattern);
    if (typeof compiled === 'string') {
      const why = `must be a valid regular expression, but isn't: ${compiled}`;
      this.errors.push(invalid(`${path}.pattern`, pattern, why));
    }
  }

  #type(schema: Schema, path: string, { level }: NodePosition): void {
    const { type, items } = schema;
    if (type === 'array' && items === undefined) {
      this.errors.push(required(`${path}.items`, 'must be specified'));
    }
    if (schema['x-kubernetes-embedded-resource'] === true && type !== 'object') {
      const why = 'must be object if x-kubernetes-embedded-resource is true';
      this.errors.push(type === undefined ? required(`${path}.type`, why) : invalid(`${path}.type`, type, why));
    } else if (
      type === undefined &&
      schema['x-kubernetes-int-or-string'] !== true &&
      schema['x-kubernetes-preserve-unknown-fields'] !== true
    ) {
      this.errors.push(required(`${path}.type`, NO_TYPE[level]));
    }
    if (level === 'root' && type !== undefined && type !== 'object') {
      this.errors.push(invalid(`${path}.type`, type, 'must be object at the root'));
    }
  }

  #extensions(schema: Schema, path: string): void {
    const why = 'must be false if x-kubernetes-int-or-string is true';
    for (const other of ['x-kubernetes-preserve-unknown-fields', 'x-kubernetes-embedded-resource'] as const) {
      if (schema['x-kubernetes-int-or-string'] === true && schema[other] === true) {
        this.errors.push(invalid(`${path}.${other}`, true, why));
      }
    }
  }

  /** Validates the schema of an object: the root, or an embedded resource. */
  #resource(schema: Schema, path: string, { level }: NodePosition): void {
    const isEmbedded = schema['x-kubernetes-embedded-resource'] === true;
    const { properties = {} } = schema;
    const additional = `${path}.additionalProperties`;
    if (isEmbedded && schema.additionalProperties !== undefined) {
      this.errors.push(forbidden(additional, 'must not be used if x-kubernetes-embedded-resource is set'));
    }
    if (level === 'root' && schema.additionalProperties !== undefined) {
      this.errors.push(forbidden(additional, 'must not be used at the root'));
    }
    const isPreserving = schema['x-kubernetes-preserve-unknown-fields'] === true;
    if (isEmbedded && !isPreserving && Object.keys(properties).length === 0) {
      const why =
        'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields';
      this.errors.push(required(`${path}.properties`, why));
    }
    if (level !== 'root' && !isEmbedded) {
      return;
    }
    for (const name of ['kind', 'apiVersion']) {
      const property = properties[name];
      if (property !== undefined && property.type !== 'string') {
        this.errors.push(invalid(`${path}.properties[${name}].type`, property.type ?? '', 'must be string'));
      }
    }
    const { metadata } = properties;
    if (metadata !== undefined && metadata.type !== 'object') {
      this.errors.push(invalid(`${path}.properties[metadata].type`, metadata.type ?? '', 'must be object'));
    }
    if (metadata !== undefined && level === 'root' && !restrictsNamesOnly(metadata)) {
      const why = 'must not specify anything other than name and generateName, but metadata is implicitly specified';
      this.errors.push(forbidden(`${path}.properties[metadata]`, why));
    }
  }

  #children(schema: Schema, path: string, position: NodePosition, depth: number): void {
    const { isInsideMetadata, noDefaults } = position;
    if (schema.items !== undefined) {
      this.node(schema.items, `${path}.items`, { level: 'item', isInsideMetadata, noDefaults }, depth + 1);
    }
    const additional = additionalOf(schema);
    if (additional !== undefined) {
      const why = isInsideMetadata ? 'inside additionalProperties applying to object metadata' : noDefaults;
      const inner: NodePosition = { level: 'field', isInsideMetadata, noDefaults: why };
      this.node(additional, `${path}.additionalProperties`, inner, depth + 1);
    }
    const isResource = position.level === 'root' || schema['x-kubernetes-embedded-resource'] === true;
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      const isMeta = isResource && (name === 'metadata' || name === 'kind' || name === 'apiVersion');
      const inner: NodePosition = {
        level: 'field',
        isInsideMetadata: isInsideMetadata || isMeta,
        noDefaults: isMeta && position.level === 'root' ? `in top-level ${name}` : noDefaults,
      };
      this.node(property, `${path}.properties[${name}]`, inner, depth + 1);
    }
  }

  /** Validates `allOf`, `anyOf`, `oneOf` and `not`: they may only restrict values of fields that the schema specifies. */
  #alternatives(
    schema: Schema,
    base: Schema | undefined,
    path: string,
    basePath: string,
    depth: number,
    skip: { readonly isAnyOfSkipped: boolean; readonly isFirstAnyOfSkipped: boolean },
  ): void {
    for (const keyword of ['anyOf', 'allOf', 'oneOf'] as const) {
      for (const [index, one] of (schema[keyword] ?? []).entries()) {
        const isFirst = keyword === 'allOf' && index === 0 && skip.isFirstAnyOfSkipped;
        if (keyword !== 'anyOf' || !skip.isAnyOfSkipped) {
          this.#nested(one, base, `${path}.${keyword}[${index}]`, basePath, depth + 1, isFirst);
        }
      }
    }
    if (schema.not !== undefined) {
      this.#nested(schema.not, base, `${path}.not`, basePath, depth + 1, false);
    }
  }

  #nested(
    schema: Schema,
    base: Schema | undefined,
    path: string,
    basePath: string,
    depth: number,
    isAnyOfSkipped: boolean,
  ): void {
    if (depth > MAX_NESTING) {
      this.errors.push(forbidden(path, `is nested more than ${MAX_NESTING} levels deep`));
      return;
    }
    if (base === undefined) {
      this.errors.push(required(basePath, `because it is defined in ${path}`));
      return;
    }
    this.#commonKeywords(schema, path);
    for (const [keyword, why] of NESTED_FORBIDDEN) {
      if (Object.hasOwn(schema, keyword) && schema[keyword] !== false && schema[keyword] !== '') {
        this.errors.push(forbidden(`${path}.${keyword}`, `must be ${why} to be structural`));
      }
    }
    this.#alternatives(schema, base, path, basePath, depth, { isAnyOfSkipped, isFirstAnyOfSkipped: false });
    if (schema.items !== undefined) {
      const items = base === ANY_FIELDS ? ANY_FIELDS : base.items;
      this.#nested(schema.items, items, `${path}.items`, `${basePath}.items`, depth + 1, false);
    }
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      const inner = `${path}.properties[${name}]`;
      if (name === 'metadata') {
        this.errors.push(forbidden(inner, 'must not be specified in a nested context'));
      }
      const { properties = {} } = base;
      const own = Object.hasOwn(properties, name) ? properties[name] : undefined;
      const baseProperty = base === ANY_FIELDS ? ANY_FIELDS : own;
      this.#nested(property, baseProperty, inner, `${basePath}.properties[${name}]`, depth + 1, false);
    }
  }
}

/** A base schema that declares all fields. */
const ANY_FIELDS: Schema = {};

const NO_TYPE: Readonly<Record<NodePosition['level'], string>> = {
  root: 'must not be empty at the root',
  item: 'must not be empty for specified array items',
  field: 'must not be empty for specified object fields',
};

/** Keywords that are forbidden in alternatives, with the value that messages require. */
const NESTED_FORBIDDEN: readonly (readonly [keyof Schema, string])[] = [
  ['type', 'empty'],
  ['additionalProperties', 'undefined'],
  ['default', 'undefined'],
  ['title', 'empty'],
  ['description', 'empty'],
  ['nullable', 'false'],
  ['x-kubernetes-preserve-unknown-fields', 'false'],
  ['x-kubernetes-embedded-resource', 'false'],
  ['x-kubernetes-int-or-string', 'false'],
  ['x-kubernetes-list-map-keys', 'empty'],
  ['x-kubernetes-list-type', 'undefined'],
  ['x-kubernetes-map-type', 'undefined'],
  ['x-kubernetes-validations', 'empty'],
];

function isRestricting({ additionalProperties }: Schema): boolean {
  return additionalProperties === false || isJsonObject(additionalProperties);
}

function restrictsNamesOnly({ type: _type, properties = {}, ...others }: Schema): boolean {
  const names = Object.keys(properties);
  return names.every((name) => name === 'name' || name === 'generateName') && Object.keys(others).length === 0;
}
