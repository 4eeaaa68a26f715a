// Bodies of requests: read under a limit, and decoded from JSON or YAML.
import type { IncomingMessage } from 'node:http';
import {
  boolYaml11Tag,
  floatCoreTag,
  intCoreTag,
  load,
  mapTag,
  mergeTag,
  nullYaml11Tag,
  Schema,
  seqTag,
  strTag,
  YAMLException,
} from 'js-yaml';
import { ApiError } from '../../cluster/index.ts';
import { isJsonObject } from '../../resources/index.ts';
import type { JsonObject, JsonValue } from '../../resources/index.ts';
import { mediaRanges } from './negotiation.ts';
import { ProtobufDecoder } from './protobuf/decode-object.ts';
import { kubernetesMessages } from './protobuf/message-data.ts';
import { WireError } from './protobuf/wire-reader.ts';

/** Largest body of a request. Bytes: what an API server takes, twice the largest object that etcd stores. */
export const MAX_BODY_BYTES = 3 * 1024 * 1024;

/** Objects in objects. The schemas of large CustomResourceDefinitions have about 60; what reads objects recurses so deep. */
export const MAX_BODY_DEPTH = 500;

/** Values in a YAML body once its aliases are followed: as many as a JSON body of the largest size can have (`[1,1,…]`). */
const MAX_YAML_VALUES = MAX_BODY_BYTES / 2;

/** Escapes that JSON makes of halves of characters (surrogates): two of them need not be a whole. */
const HALF_CHARACTER = /\\u[dD][89a-fA-F]/;

/** Longest part of a body that a message repeats. */
const MAX_QUOTED_BYTES = 200;

/** Scalars as kubectl and API servers read them: YAML 1.1 booleans and nulls; dates stay text. */
function kubernetesSchema(): Schema {
  return new Schema([strTag, seqTag, mapTag, nullYaml11Tag, boolYaml11Tag, intCoreTag, floatCoreTag, mergeTag]);
}

/**
 * Reads the whole body.
 * @throws ApiError 413 when it is larger than {@link MAX_BODY_BYTES}, 400 when it ends early.
 */
export async function readBody(request: IncomingMessage): Promise<Buffer> {
  const declared = Number(request.headers['content-length'] ?? '0');
  if (declared > MAX_BODY_BYTES) {
    throw tooLarge();
  }
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    // Not destroyed when it is too large: the client is to read why.
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      const bytes = chunk as Buffer;
      size += bytes.length;
      if (size > MAX_BODY_BYTES) {
        throw tooLarge();
      }
      chunks.push(bytes);
    }
  } catch (error) {
    if (error instanceof ApiError) {
      throw error;
    }
    throw ApiError.badRequest('the request ended before its body was complete');
  }
  return chunks.length === 1 ? (chunks[0] ?? Buffer.alloc(0)) : Buffer.concat(chunks, size);
}

function tooLarge(): ApiError {
  return new ApiError(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${MAX_BODY_BYTES}`);
}

/** How a body is written. */
export type BodyFormat = 'json' | 'yaml' | 'protobuf';

/** Why a body cannot be decoded: what an API server's decoder says. */
export class BodySyntaxError extends Error {
  override readonly name = 'BodySyntaxError';
}

/**
 * The format that a Content-Type names; JSON without one.
 * @throws ApiError 415 for all others, CBOR among them.
 */
export function objectFormat(contentType: string | undefined): BodyFormat {
  const type = mediaType(contentType);
  if (type === '' || type === 'application/json') {
    return 'json';
  }
  if (type === 'application/yaml') {
    return 'yaml';
  }
  if (type === 'application/vnd.kubernetes.protobuf') {
    return 'protobuf';
  }
  throw new ApiError(
    415,
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf`,
  );
}

/** `application/json` of `application/json; charset=utf-8`. */
export function mediaType(contentType: string | undefined): string {
  return mediaRanges(contentType)[0]?.type ?? '';
}

/**
 * The object in a body.
 * @throws ApiError 400 in an API server's words when there is none.
 */
export function decodeObject(body: Buffer, format: BodyFormat, kind: string): JsonObject {
  let value: JsonValue;
  try {
    value = format === 'protobuf' ? decodeProtobuf(body) : decode(body, format);
  } catch (error) {
    if (error instanceof BodySyntaxError) {
      throw unrecognized(
        body,
        kind,
        `${format === 'json' ? "couldn't get version/kind; json parse error: " : ''}${error.message}`,
      );
    }
    throw error;
  }
  if (value === null) {
    return {};
  }
  if (!isJsonObject(value)) {
    const type = Array.isArray(value) ? 'array' : typeof value;
    const found = type === 'boolean' ? 'bool' : type;
    throw unrecognized(
      body,
      kind,
      `couldn't get version/kind; json parse error: json: cannot unmarshal ${found} into an object`,
    );
  }
  return value;
}

function unrecognized(body: Buffer, kind: string, why: string): ApiError {
  const start = body.subarray(0, MAX_QUOTED_BYTES).toString('utf8');
  const quoted = body.length === 0 ? '<empty>' : start;
  return ApiError.badRequest(`the object provided is unrecognized (must be of type ${kind}): ${why} (${quoted})`);
}

/**
 * The value in a body.
 * @throws BodySyntaxError
 */
export function decode(body: Buffer, format: 'json' | 'yaml'): JsonValue {
  const text = body.toString('utf8');
  if (format === 'yaml' && !/^\s*\{/.test(text)) {
    return decodeYaml(text);
  }
  try {
    return decodeJson(text);
  } catch (error) {
    if (format === 'json') {
      throw error;
    }
    // Flow mappings of YAML begin like JSON.
    return decodeYaml(text);
  }
}

function decodeProtobuf(body: Buffer): JsonValue {
  try {
    return new ProtobufDecoder(kubernetesMessages()).decode(body);
  } catch (error) {
    if (error instanceof WireError) {
      throw new BodySyntaxError(error.message, { cause: error });
    }
    throw error;
  }
}

function decodeJson(text: string): JsonValue {
  checkDepth(text);
  try {
    const value: unknown = JSON.parse(text);
    return HALF_CHARACTER.test(text) ? copied(value) : (value as JsonValue);
  } catch (error) {
    throw new BodySyntaxError(goSyntaxError(text, error), { cause: error });
  }
}

/** The commonest mistakes in the words of an API server, the others in ours. */
function goSyntaxError(text: string, error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const isCutOff = text.trim() === '' || message.includes('end of JSON input') || message.startsWith('Unterminated');
  if (isCutOff || /^Expected .* at position (\d+)/.exec(message)?.[1] === String(text.length)) {
    return 'unexpected end of JSON input';
  }
  return message.slice(0, MAX_QUOTED_BYTES);
}

/** JSON.parse takes any depth, what works on its results does not. */
function checkDepth(text: string): void {
  let depth = 0;
  let isInString = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (isInString) {
      if (code === 0x5c) {
        at++;
      } else if (code === 0x22) {
        isInString = false;
      }
    } else if (code === 0x22) {
      isInString = true;
    } else if (code === 0x7b || code === 0x5b) {
      depth++;
      if (depth > MAX_BODY_DEPTH) {
        throw tooDeep();
      }
    } else if (code === 0x7d || code === 0x5d) {
      depth--;
    }
  }
}

function tooDeep(): BodySyntaxError {
  return new BodySyntaxError(`the body is nested deeper than ${MAX_BODY_DEPTH} levels`);
}

function decodeYaml(text: string): JsonValue {
  let value: unknown;
  try {
    value = load(text, { schema: kubernetesSchema(), maxDepth: MAX_BODY_DEPTH });
  } catch (error) {
    const line = error instanceof YAMLException ? (error.mark?.line ?? 0) + 1 : 1;
    const reason = error instanceof YAMLException ? error.reason : String(error);
    throw new BodySyntaxError(`yaml: line ${line}: ${reason.slice(0, MAX_QUOTED_BYTES)}`, { cause: error });
  }
  return copied(value);
}

/**
 * A tree of its own for each alias, with keys, numbers and characters that JSON has; halves of characters are replaced, as Go's
 * decoder does. Within a budget, since aliases can multiply or be cycles.
 */
function copied(value: unknown): JsonValue {
  let budget = MAX_YAML_VALUES;
  const copy = (from: unknown, depth: number): JsonValue => {
    budget--;
    if (budget < 0) {
      throw new BodySyntaxError('yaml: document contains excessive aliasing');
    }
    if (depth > MAX_BODY_DEPTH) {
      throw tooDeep();
    }
    if (Array.isArray(from)) {
      return from.map((item) => copy(item, depth + 1));
    }
    if (typeof from === 'object' && from !== null) {
      return Object.fromEntries(Object.entries(from).map(([key, item]) => [key.toWellFormed(), copy(item, depth + 1)]));
    }
    if (typeof from === 'number' && !Number.isFinite(from)) {
      throw new BodySyntaxError(`json: unsupported value: ${from}`);
    }
    if (typeof from === 'string') {
      return from.toWellFormed();
    }
    return typeof from === 'number' || typeof from === 'boolean' ? from : null;
  };
  return copy(value, 0);
}
