// Embedded objects with their own kind: `x-kubernetes-embedded-resource` (apiextensions, `schema/objectmeta`).
import { invalid, required } from '../field-error.ts';
import type { FieldError } from '../field-error.ts';
import { isJsonObject, own } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import { dns1035LabelProblems } from '../../names/index.ts';
import type { Schema } from '../schema.ts';
import { pathOfField } from './field-path.ts';
import { metadataErrors } from './metadata-validation.ts';
import { MAX_NESTING, propertyOf, schemaOfField } from './schema-fields.ts';

/** Mistakes in `apiVersion`, `kind` and `metadata` of embedded objects. */
export function embeddedErrors(value: JsonValue, schema: Schema, path: string, depth = 0): FieldError[] {
  if (depth > MAX_NESTING) {
    return [];
  }
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined
      ? []
      : value.flatMap((one, at) => embeddedErrors(one, items, `${path}[${at}]`, depth + 1));
  }
  if (!isJsonObject(value)) {
    return [];
  }
  const embedded = schema['x-kubernetes-embedded-resource'] === true ? resourceErrors(value, path) : [];
  const inner = Object.keys(value).flatMap((name) => {
    const childSchema = schemaOfField(schema, name);
    const childPath = propertyOf(schema, name) === undefined ? `${path}[${name}]` : pathOfField(path, name);
    return childSchema === undefined ? [] : embeddedErrors(own(value, name) ?? null, childSchema, childPath, depth + 1);
  });
  return [...embedded, ...inner];
}

function resourceErrors(object: JsonObject, path: string): FieldError[] {
  return [
    ...textErrors(object, 'apiVersion', path, apiVersionProblem),
    ...textErrors(object, 'kind', path, kindProblem),
    ...nestedMetadataErrors(object, path),
  ];
}

function textErrors(
  object: JsonObject,
  name: 'apiVersion' | 'kind',
  path: string,
  problemOf: (text: string) => string | undefined,
): FieldError[] {
  const value = own(object, name);
  const field = pathOfField(path, name);
  if (value === undefined) {
    return [required(field)];
  }
  if (typeof value !== 'string') {
    return [invalid(field, value, 'must be a string')];
  }
  const problem = value === '' ? 'must not be empty' : problemOf(value);
  return problem === undefined ? [] : [invalid(field, value, problem)];
}

function apiVersionProblem(apiVersion: string): string | undefined {
  return apiVersion.split('/').length > 2 ? `unexpected GroupVersion string: ${apiVersion}` : undefined;
}

function kindProblem(kind: string): string | undefined {
  const problems = dns1035LabelProblems(kind.toLowerCase());
  return problems.length === 0 ? undefined : `may have mixed case, but should otherwise match: ${problems.join(',')}`;
}

function nestedMetadataErrors(object: JsonObject, path: string): FieldError[] {
  const metadata = own(object, 'metadata');
  if (!isJsonObject(metadata)) {
    return [];
  }
  // Embedded objects may have no name.
  const name = own(metadata, 'name');
  const named = { ...metadata, name: name === undefined || name === '' ? 'unnamed' : name };
  const namespace = own(metadata, 'namespace');
  const errors = metadataErrors({ apiVersion: '', kind: '', metadata: named } as Parameters<typeof metadataErrors>[0], {
    namespaced: typeof namespace === 'string' && namespace !== '',
    nameRule: 'path-segment',
  });
  return errors.map((error) => ({ ...error, field: pathOfField(path, error.field) }));
}
