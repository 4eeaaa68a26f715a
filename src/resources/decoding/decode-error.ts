import { quote } from '../../go/index.ts';
import { isJsonObject } from '../../values/index.ts';
import { componentOf, QUANTITY_FORMAT } from '../kubernetes/component-schemas.ts';
import { goFactsOf } from '../kubernetes/openapi-data.ts';
import type { Schema } from '../schema.ts';
import { quantityOf } from './quantities.ts';

/** A value to decode, with what messages say about it. */
interface Reading {
  readonly value: unknown;
  readonly schema: Schema;
  /** The Go type of the value, where it has a name that does not follow from the schema. */
  readonly goType: string | undefined;
  /** The Go struct that contains the value. */
  readonly struct: string;
  /** `spec.containers.image`, without indexes. */
  readonly path: string;
}

/**
 * The message of an API server for a value of the wrong JSON type, which it rejects with 400. Undefined when the object can be
 * decoded.
 */
export function decodeError(
  definition: { readonly kind: string; readonly version: string; readonly schema: () => Schema },
  object: unknown,
): string | undefined {
  const { kind, version } = definition;
  const problem = readProblem(object, definition.schema(), kind);
  return problem === undefined
    ? undefined
    : `${kind} in version ${quote(version)} cannot be handled as a ${kind}: ${problem}`;
}

function readProblem(object: unknown, schema: Schema, kind: string): string | undefined {
  const stack: Reading[] = [{ value: object, schema, goType: undefined, struct: kind, path: '' }];
  for (let reading = stack.pop(); reading !== undefined; reading = stack.pop()) {
    const problem = problemOf(reading);
    if (problem !== undefined) {
      return problem;
    }
    // In document order. Pushed one by one, because one call can have only some 100,000 arguments.
    for (const child of childrenOf(reading).reverse()) {
      stack.push(child);
    }
  }
  return undefined;
}

function childrenOf({ value, schema, goType, struct, path }: Reading): Reading[] {
  if (Array.isArray(value) && schema.items !== undefined) {
    const { items } = schema;
    return value.map((item) => ({ value: item, schema: items, goType: goType?.replace(/^\[\]/, ''), struct, path }));
  }
  if (!isJsonObject(value)) {
    return [];
  }
  if (schema.properties === undefined) {
    const { additionalProperties: values } = schema;
    return typeof values !== 'object'
      ? []
      : Object.values(value).map((entry) => ({ value: entry, schema: values, goType: undefined, struct, path }));
  }
  const { properties } = schema;
  const component = componentOf(schema);
  const types = component === undefined ? {} : (goFactsOf(component)?.types ?? {});
  const inner = component === undefined ? struct : lastPart(component);
  return Object.entries(value).flatMap(([name, entry]) => {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined;
    const goType = Object.hasOwn(types, name) ? types[name] : undefined;
    return schema === undefined
      ? []
      : [{ value: entry, schema, goType, struct: inner, path: path === '' ? name : `${path}.${name}` }];
  });
}

const lastPart = (component: string): string => component.slice(component.lastIndexOf('.') + 1);

function problemOf(reading: Reading): string | undefined {
  const { value, schema } = reading;
  if (value === null || schema['x-kubernetes-preserve-unknown-fields'] === true) {
    return undefined;
  }
  if (schema.format === QUANTITY_FORMAT) {
    return quantityProblem(value);
  }
  if (schema['x-kubernetes-int-or-string'] === true) {
    return typeof value === 'string' || isInteger(value, 'int32') ? undefined : mismatch(reading, 'int32');
  }
  switch (schema.type) {
    case 'string':
      return typeof value === 'string' ? textProblem(value, schema) : mismatch(reading, scalarType(reading));
    case 'boolean':
      return typeof value === 'boolean' ? undefined : mismatch(reading, 'bool');
    case 'integer':
      return isInteger(value, schema.format ?? 'int64') ? undefined : mismatch(reading, schema.format ?? 'int64');
    case 'number':
      return typeof value === 'number' || typeof value === 'bigint' ? undefined : mismatch(reading, 'float64');
    case 'array':
      return Array.isArray(value) ? undefined : mismatch(reading, typeName(schema, reading.goType));
    case 'object':
      return isJsonObject(value) ? undefined : mismatch(reading, typeName(schema, reading.goType));
    default:
      return undefined;
  }
}

/** Commands read integers that a number cannot hold as a bigint. */
function isInteger(value: unknown, format: string): boolean {
  const limit = format === 'int32' ? 2 ** 31 : 2 ** 63;
  const isWhole = typeof value === 'bigint' || Number.isInteger(value);
  return isWhole && Number(value) >= -limit && Number(value) < limit;
}

function mismatch({ value, struct, path }: Reading, type: string): string {
  return `json: cannot unmarshal ${jsonType(value, type)} into Go struct field ${struct}.${path} of type ${type}`;
}

function jsonType(value: unknown, type: string): string {
  if (Array.isArray(value)) {
    return 'array';
  }
  if (typeof value === 'number' || typeof value === 'bigint') {
    // For an integer, Go's message contains the number.
    return type.startsWith('int') ? numberText(value) : 'number';
  }
  return typeof value === 'boolean' ? 'bool' : typeof value;
}

const numberText = (value: number | bigint): string => `number ${value}`;

/** The Go type of a string. */
function scalarType({ schema, goType }: Reading): string {
  if (schema.format === 'byte') {
    return '[]uint8';
  }
  return goType ?? 'string';
}

function typeName(schema: Schema, goType: string | undefined): string {
  if (goType !== undefined) {
    return goType;
  }
  const component = componentOf(schema);
  if (component !== undefined) {
    return component.split('.').slice(-2).join('.');
  }
  if (schema.items !== undefined) {
    return `[]${typeName(schema.items, undefined)}`;
  }
  if (typeof schema.additionalProperties === 'object') {
    return `map[string]${typeName(schema.additionalProperties, undefined)}`;
  }
  const scalars = { boolean: 'bool', integer: schema.format ?? 'int64', number: 'float64' } as const;
  return schema.format === 'byte' ? '[]uint8' : (scalars[schema.type as keyof typeof scalars] ?? 'string');
}

const NO_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

function quantityProblem(value: unknown): string | undefined {
  return quantityOf(value) === undefined ? NO_QUANTITY : undefined;
}

function textProblem(text: string, schema: Schema): string | undefined {
  if (schema.format === 'byte') {
    return base64Problem(text);
  }
  return schema.format === 'date-time'
    ? timeProblem(text, componentOf(schema)?.endsWith('MicroTime') === true)
    : undefined;
}

/** Go's message for malformed base64. Line breaks are allowed anywhere. */
function base64Problem(text: string): string | undefined {
  const wrong = (at: number): string => `illegal base64 data at input byte ${at}`;
  // Number of characters in the current group of four, without padding.
  let group = 0;
  let padding = 0;
  for (let index = 0; index < text.length; index += 1) {
    const letter = text[index] ?? '';
    if (letter === '\n' || letter === '\r') {
      continue;
    }
    if (letter === '=' && group + padding < 4 && group >= 2) {
      padding += 1;
    } else if (padding > 0 || !/[A-Za-z0-9+/]/.test(letter)) {
      return wrong(index);
    } else {
      group = group === 4 ? 1 : group + 1;
    }
    if (padding > 0 && group + padding > 4) {
      return wrong(index);
    }
  }
  const isWhole = group + padding === 4 || (group === 0 && padding === 0);
  return isWhole ? undefined : wrong(text.length - group);
}

const DATE: readonly (readonly [pattern: RegExp, layout: string])[] = [
  [/^\d{4}/, '2006'],
  [/^-/, '-'],
  [/^\d{2}/, '01'],
  [/^-/, '-'],
  [/^\d{2}/, '02'],
  [/^T/, 'T'],
  [/^\d{2}/, '15'],
  [/^:/, ':'],
  [/^\d{2}/, '04'],
  [/^:/, ':'],
  [/^\d{2}/, '05'],
];
const ZONE = [/^(?:Z|[+-]\d{2}:\d{2})/, 'Z07:00'] as const;
const TIME = [...DATE, [/^(?:\.\d+)?(?=Z|[+-])/, 'Z07:00'] as const, ZONE];
const MICRO_TIME = [...DATE, [/^\.\d{6}(?!\d)/, '.000000'] as const, ZONE];

function timeProblem(text: string, isMicro: boolean): string | undefined {
  const layout = isMicro ? '2006-01-02T15:04:05.000000Z07:00' : '2006-01-02T15:04:05Z07:00';
  const start = `parsing time ${quote(text)} as ${quote(layout)}`;
  let rest = text;
  for (const [pattern, part] of isMicro ? MICRO_TIME : TIME) {
    const found = pattern.exec(rest);
    if (found === null) {
      return `${start}: cannot parse ${quote(rest)} as ${quote(part)}`;
    }
    rest = rest.slice(found[0].length);
  }
  if (rest !== '') {
    return `parsing time ${quote(text)}: extra text: ${quote(rest)}`;
  }
  return Number.isNaN(Date.parse(text)) ? `parsing time ${quote(text)}: day out of range` : undefined;
}
