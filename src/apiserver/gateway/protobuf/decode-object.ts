// Decodes protobuf, in which kubectl sends objects of builtin kinds
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding).
import { apiVersionOf, isJsonObject, kubernetesOpenApi } from '../../../resources/index.ts';
import type { JsonObject, JsonValue } from '../../../resources/index.ts';
import type { MessageField, Messages } from './message-data.ts';
import { WireError, WireReader } from './wire-reader.ts';
import type { WireField } from './wire-reader.ts';
import { parseJson } from '../../../values/index.ts';

/** The prefix of objects in protobuf. */
const MAGIC = Buffer.from('k8s\0');

/** Maximum nesting of messages; Pods have twelve levels. */
const MAX_DEPTH = 100;

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';

type Decode = (fields: JsonObject) => JsonValue;

/** Messages whose JSON form does not follow from their fields. */
const SPECIAL: ReadonlyMap<string, Decode> = new Map<string, Decode>([
  ['io.k8s.apimachinery.pkg.api.resource.Quantity', ({ string = '0' }) => string],
  [
    'io.k8s.apimachinery.pkg.util.intstr.IntOrString',
    ({ type, intVal = 0, strVal = '' }) => (type === 1 ? strVal : intVal),
  ],
  [`${META}.Time`, (fields) => timeText(fields, 0)],
  [`${META}.MicroTime`, (fields) => timeText(fields, 6)],
  [`${META}.FieldsV1`, ({ Raw }) => rawJson(Raw)],
  ['io.k8s.apimachinery.pkg.runtime.RawExtension', ({ raw }) => rawJson(raw)],
]);

/** Decodes objects in protobuf. */
export class ProtobufDecoder {
  readonly #messages: Messages;

  constructor(messages: Messages) {
    this.#messages = messages;
  }

  /**
   * The object in a body, in its JSON form. It may have empty fields, which JSON would omit.
   * @throws WireError when the body is not an object of a Kubernetes kind.
   */
  decode(body: Buffer): JsonObject {
    if (!body.subarray(0, MAGIC.length).equals(MAGIC)) {
      throw new WireError('provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]');
    }
    const { apiVersion, kind, raw } = envelopeOf(body.subarray(MAGIC.length));
    const message = messageOf(apiVersion, kind);
    if (message === undefined || !Object.hasOwn(this.#messages, message)) {
      throw new WireError(`no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)}`);
    }
    const object = this.#message(message, raw, 0);
    if (!isJsonObject(object)) {
      throw new WireError(`${kind} is not an object`);
    }
    const { metadata } = object;
    return { ...object, apiVersion, kind, ...(isJsonObject(metadata) ? { metadata: withoutEmpty(metadata) } : {}) };
  }

  #message(name: string, bytes: Buffer, depth: number): JsonValue {
    if (depth > MAX_DEPTH) {
      throw new WireError('proto: the message is nested too deeply');
    }
    const fields = Object.hasOwn(this.#messages, name) ? (this.#messages[name] ?? []) : [];
    const object: JsonObject = {};
    for (const wire of new WireReader(bytes).fields()) {
      const field = fields.find(([number]) => number === wire.number);
      if (field !== undefined) {
        this.#add(object, field, wire, depth);
      }
    }
    const special = SPECIAL.get(name);
    if (special !== undefined) {
      return special(object);
    }
    const [only] = fields;
    // In protobuf, some lists are messages with one field, `items`.
    return fields.length === 1 && only?.[1] === 'items' && only[3] === 'many' ? (object['items'] ?? []) : object;
  }

  #add(object: JsonObject, [, name, type, label]: MessageField, wire: WireField, depth: number): void {
    if (label === 'map') {
      const [key, value] = this.#entry(type, bytesOf(wire), depth);
      const map = isJsonObject(object[name]) ? object[name] : {};
      Object.defineProperty(map, key, { value, enumerable: true, configurable: true, writable: true });
      object[name] = map;
    } else if (label === 'many') {
      const list = Array.isArray(object[name]) ? object[name] : [];
      list.push(this.#value(type, wire, depth));
      object[name] = list;
    } else if (name === '') {
      const inlined = this.#value(type, wire, depth);
      Object.assign(object, isJsonObject(inlined) ? inlined : {});
    } else {
      object[name] = this.#value(type, wire, depth);
    }
  }

  #entry(type: string, bytes: Buffer, depth: number): readonly [string, JsonValue] {
    let key = '';
    let value: JsonValue = this.#zero(type);
    for (const wire of new WireReader(bytes).fields()) {
      if (wire.number === 1) {
        key = bytesOf(wire).toString('utf8');
      } else if (wire.number === 2) {
        value = this.#value(type, wire, depth);
      }
    }
    return [key, value];
  }

  #zero(type: string): JsonValue {
    return type === 'string' || type === 'bytes' ? '' : null;
  }

  #value(type: string, wire: WireField, depth: number): JsonValue {
    switch (type) {
      case 'string':
        return bytesOf(wire).toString('utf8');
      case 'bytes':
        return bytesOf(wire).toString('base64');
      case 'bool':
        return bitsOf(wire) !== 0n;
      case 'int32':
        return Number(BigInt.asIntN(32, bitsOf(wire)));
      case 'int64':
        return Number(BigInt.asIntN(64, bitsOf(wire)));
      case 'uint32':
      case 'uint64':
        return Number(bitsOf(wire));
      case 'double':
        return doubleOf(wire);
      default:
        return this.#message(type, bytesOf(wire), depth + 1);
    }
  }
}

function bytesOf({ value }: WireField): Buffer {
  if (typeof value === 'bigint') {
    throw new WireError('proto: wrong wireType for bytes');
  }
  return value;
}

function bitsOf({ value }: WireField): bigint {
  if (typeof value !== 'bigint') {
    throw new WireError('proto: wrong wireType for a number');
  }
  return value;
}

function doubleOf(wire: WireField): number {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(bitsOf(wire));
  const value = bytes.readDoubleLE();
  return Number.isFinite(value) ? value : 0;
}

/** Reads `runtime.Unknown`, the envelope: the type of an object, and its encoded fields. */
function envelopeOf(bytes: Buffer): { readonly apiVersion: string; readonly kind: string; readonly raw: Buffer } {
  const found = { apiVersion: '', kind: '', raw: Buffer.alloc(0) as Buffer };
  for (const wire of new WireReader(bytes).fields()) {
    if (wire.number === 1) {
      for (const type of new WireReader(bytesOf(wire)).fields()) {
        const text = bytesOf(type).toString('utf8');
        if (type.number === 1) {
          found.apiVersion = text;
        } else if (type.number === 2) {
          found.kind = text;
        }
      }
    } else if (wire.number === 2) {
      found.raw = bytesOf(wire);
    }
  }
  return found;
}

function messageOf(apiVersion: string, kind: string): string | undefined {
  const suffix = `.${kind}`;
  return Object.entries(kubernetesOpenApi()).find(([name, schema]) => {
    const types = schema['x-kubernetes-group-version-kind'];
    return (
      name.endsWith(suffix) &&
      Array.isArray(types) &&
      types.some((type) => isJsonObject(type) && type['kind'] === kind && apiVersionText(type) === apiVersion)
    );
  })?.[0];
}

function apiVersionText({ group, version }: JsonObject): string | undefined {
  if (typeof group !== 'string' || typeof version !== 'string') {
    return undefined;
  }
  return apiVersionOf({ group, version });
}

/** RFC 3339 text of seconds and nanoseconds; null for zero. */
function timeText({ seconds = 0, nanos = 0 }: JsonObject, digits: 0 | 6): JsonValue {
  const milliseconds = Number(seconds) * 1000;
  if ((seconds === 0 && nanos === 0) || Math.abs(milliseconds) > 8.64e15) {
    return null;
  }
  const whole = new Date(milliseconds).toISOString().slice(0, 'YYYY-MM-DDThh:mm:ss'.length);
  const fraction = String(Math.trunc(Number(nanos) / 1000)).padStart(6, '0');
  return digits === 0 ? `${whole}Z` : `${whole}.${fraction}Z`;
}

function rawJson(base64: JsonValue | undefined): JsonValue {
  try {
    return typeof base64 === 'string' && base64 !== ''
      ? (parseJson(Buffer.from(base64, 'base64').toString('utf8')) as JsonValue)
      : null;
  } catch (error) {
    throw new WireError('the raw JSON in the message is malformed', { cause: error });
  }
}

/** Removes the empty fields of metadata, which Go's protobuf encoder does not omit. */
function withoutEmpty(metadata: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(metadata).filter(([, value]) => value !== '' && value !== 0 && value !== null),
  );
}
