import { isJsonObject, type JsonObject, type JsonValue } from '../../values/json-text.ts';
import { QUANTITY_FORMAT, type Schema } from '../../../resources/index.ts';

/** Levels of fields that are filled in: those of a probe in a container of a pod template. Schemas may refer to themselves. */
const MAX_DEPTH = 10;
const TEXT = 'sample';
/** Fields that objects in a request have only in special states. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  'deletionGracePeriodSeconds',
  'deletionTimestamp',
  'managedFields',
  'status',
]);
const TEXTS: Readonly<Record<string, string>> = {
  [QUANTITY_FORMAT]: '1',
  byte: 'c2FtcGxl',
  'date-time': '2026-01-01T00:00:00Z',
};

/** An object with every field of its kind, lists of one element, and maps of one entry. */
export function sampleObject(schema: Schema, apiVersion: string, kind: string): JsonObject {
  const sample = valueOf(schema, 0);
  return { ...(isJsonObject(sample) ? sample : {}), apiVersion, kind };
}

function valueOf(whole: Schema, depth: number): JsonValue | undefined {
  const schema = whole.type === undefined && whole.allOf?.length === 1 ? (whole.allOf[0] ?? whole) : whole;
  if (depth > MAX_DEPTH) {
    return undefined;
  }
  if (schema.enum?.[0] !== undefined) {
    return schema.enum[0] as JsonValue;
  }
  if (schema['x-kubernetes-int-or-string'] === true) {
    return 1;
  }
  const text = TEXTS[schema.format ?? ''];
  if (text !== undefined) {
    return text;
  }
  switch (schema.type) {
    case 'array': {
      const item = schema.items && valueOf(schema.items, depth + 1);
      return item === undefined ? [] : [item];
    }
    case 'boolean':
      return true;
    case 'integer':
    case 'number':
      return 1;
    case 'string':
      return TEXT;
    default:
      return fieldsOf(schema, depth);
  }
}

function fieldsOf({ properties = {}, additionalProperties }: Schema, depth: number): JsonObject {
  const entries: (readonly [string, JsonValue])[] = [];
  for (const name of Object.keys(properties)) {
    const field = properties[name];
    const value = field === undefined || LEFT_OUT.has(name) ? undefined : valueOf(field, depth + 1);
    if (value !== undefined) {
      entries.push([name, value]);
    }
  }
  const other = isSchema(additionalProperties) ? valueOf(additionalProperties, depth + 1) : undefined;
  return Object.fromEntries(other === undefined ? entries : [...entries, [TEXT, other]]);
}

function isSchema(value: Schema | boolean | undefined): value is Schema {
  return typeof value === 'object';
}
