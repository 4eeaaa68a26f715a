import { jsonText } from '../../go/index.ts';
import { CelDouble, CelDuration, CelTimestamp, escapeField, EvaluationFailure } from '../../cel/index.ts';
import type { CelResult, CelValue } from '../../cel/index.ts';
import { isJsonObject, own, setOwn } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import type { Schema } from '../schema.ts';
import { ListItems } from './correlation.ts';
import { additionalOf, propertyOf } from './schema-fields.ts';

/** Formats whose strings have other types in rules. */
const VALUE_FORMATS = new Set(['byte', 'date', 'date-time', 'datetime', 'duration']);

/**
 * Converts JSON to values of rules by a schema. Most JSON needs no conversion; whether a schema needs one is cached.
 */
export class RuleValues {
  readonly #differs = new WeakMap<Schema, boolean>();

  of(value: JsonValue, schema: Schema): CelValue | EvaluationFailure {
    const made = this.#differsFromJson(schema) ? this.#convert(value, schema) : (value as CelResult);
    return made;
  }

  #differsFromJson(schema: Schema): boolean {
    const known = this.#differs.get(schema);
    if (known !== undefined) {
      return known;
    }
    // For recursive schemas: assume no difference until the whole schema was checked.
    this.#differs.set(schema, false);
    const isOwn =
      schema['x-kubernetes-int-or-string'] !== true &&
      (schema.type === 'number' || (schema.type === 'string' && VALUE_FORMATS.has(schema.format ?? '')));
    const children = [...Object.values(schema.properties ?? {}), schema.items, additionalOf(schema)];
    const hasOther =
      isOwn ||
      Object.keys(schema.properties ?? {}).some((name) => escapeField(name) !== name) ||
      children.some((child) => child !== undefined && this.#differsFromJson(child));
    this.#differs.set(schema, hasOther);
    return hasOther;
  }

  #convert(value: JsonValue, schema: Schema): CelResult {
    if (value === null) {
      return schema.nullable === true
        ? null
        : new EvaluationFailure('invalid data, got null for schema with nullable=false');
    }
    if (schema['x-kubernetes-int-or-string'] === true) {
      return value;
    }
    if (Array.isArray(value)) {
      return this.#list(value, schema);
    }
    if (isJsonObject(value)) {
      return this.#object(value, schema);
    }
    if (typeof value === 'number' && schema.type === 'number') {
      return Number.isInteger(value) ? new CelDouble(value) : value;
    }
    return typeof value === 'string' ? textValue(value, schema.format) : value;
  }

  #list(list: readonly JsonValue[], { items }: Schema): CelResult {
    const elements: CelValue[] = [];
    for (const element of list) {
      const made = items === undefined ? (element as CelValue) : this.of(element, items);
      if (made instanceof EvaluationFailure) {
        return made;
      }
      elements.push(made);
    }
    return elements;
  }

  #object(object: JsonObject, schema: Schema): CelResult {
    const record = Object.create(null) as Record<string, CelValue>;
    const additional = additionalOf(schema);
    for (const name of Object.keys(object)) {
      const child = own(object, name) ?? null;
      const property = propertyOf(schema, name);
      const childSchema = property ?? additional;
      const made = childSchema === undefined ? (child as CelValue) : this.of(child, childSchema);
      if (made instanceof EvaluationFailure) {
        return made;
      }
      record[property === undefined ? name : (escapeField(name) ?? name)] = made;
    }
    return record;
  }
}

function textValue(text: string, format: string | undefined): CelResult {
  switch (format) {
    case 'byte':
      return new Uint8Array(Buffer.from(text, 'base64'));
    case 'date':
      return timestampOf(`${text}T00:00:00Z`) ?? new EvaluationFailure(`invalid date: ${text}`);
    case 'date-time':
    case 'datetime':
      return timestampOf(text.toUpperCase()) ?? new EvaluationFailure(`invalid date: ${text}`);
    case 'duration':
      return durationOf(text) ?? new EvaluationFailure(`invalid duration: ${text}`);
    default:
      return text;
  }
}

function timestampOf(text: string): CelTimestamp | undefined {
  const fraction = /\.(\d+)/u.exec(text)?.[1] ?? '';
  const milliseconds = Date.parse(text.replace(/\.\d+/u, ''));
  return Number.isNaN(milliseconds)
    ? undefined
    : new CelTimestamp(milliseconds / 1000, Number(fraction.slice(0, 9).padEnd(9, '0')));
}

const UNIT_NANOSECONDS: readonly (readonly [RegExp, number])[] = [
  [/^(?:ns|nano.*)$/iu, 1],
  [/^(?:us|[µμ]s|micro.*)$/iu, 1e3],
  [/^(?:ms|milli.*)$/iu, 1e6],
  [/^(?:s|sec.*)$/iu, 1e9],
  [/^(?:m|min.*)$/iu, 60e9],
  [/^(?:h|hr|hour.*)$/iu, 3600e9],
  [/^(?:d|day.*)$/iu, 86_400e9],
  [/^(?:w|wk|week.*)$/iu, 604_800e9],
];

/** Durations of Go and Scala, already validated by the format. */
function durationOf(text: string): CelDuration | undefined {
  let nanoseconds = 0;
  let isAny = text.replace(/^[+-]/u, '') === '0';
  for (const [, amount = '', unit = ''] of text.matchAll(/(\d+(?:\.\d*)?|\.\d+)\s*([A-Za-zµμ]+)/gu)) {
    const factor = UNIT_NANOSECONDS.find(([pattern]) => pattern.test(unit))?.[1];
    if (factor !== undefined) {
      nanoseconds += Number(amount) * factor;
      isAny = true;
    }
  }
  const sign = text.startsWith('-') ? -1 : 1;
  return isAny && Number.isFinite(nanoseconds) ? new CelDuration(BigInt(Math.round(sign * nanoseconds))) : undefined;
}

/**
 * An old value whose lists of type set and map are in the order of the new ones if they have equal content: rules treat
 * them as equal, whatever their order.
 */
export function inOrderOf(old: JsonValue, value: JsonValue, schema: Schema): JsonValue {
  if (Array.isArray(old) && Array.isArray(value)) {
    return listInOrderOf(old, value, schema);
  }
  if (!isJsonObject(old) || !isJsonObject(value)) {
    return old;
  }
  let result: JsonObject | undefined;
  for (const name of Object.keys(old)) {
    const childSchema = propertyOf(schema, name) ?? additionalOf(schema);
    const [before, after] = [own(old, name), own(value, name)];
    if (childSchema !== undefined && before !== undefined && after !== undefined) {
      const ordered = inOrderOf(before, after, childSchema);
      if (ordered !== before) {
        result ??= { ...old };
        setOwn(result, name, ordered);
      }
    }
  }
  return result ?? old;
}

function listInOrderOf(old: JsonValue[], value: readonly JsonValue[], schema: Schema): JsonValue[] {
  const type = schema['x-kubernetes-list-type'];
  if (old.length !== value.length || old.length < 2 || (type !== 'set' && type !== 'map')) {
    return old;
  }
  const items = ListItems.of(old, schema);
  const texts = new Map(old.map((element) => [jsonText(element), element]));
  const ordered = value.map((element) => (type === 'map' ? items?.find(element) : texts.get(jsonText(element))));
  return ordered.some((element) => element === undefined) || new Set(ordered).size !== old.length
    ? old
    : ordered.map((element) => element ?? null);
}
