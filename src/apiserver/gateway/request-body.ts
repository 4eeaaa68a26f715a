// Request bodies: size limit, and decoding of JSON and YAML.
import type { IncomingMessage } from 'node:http';
import { ApiError } from '../../cluster/index.ts';
import { isJsonObject } from '../../resources/index.ts';
import type { JsonObject, JsonValue } from '../../resources/index.ts';
import { errorText, isNestedDeeper, parseJson, textPosition } from '../../values/index.ts';
import { parseYaml, YamlSyntaxError } from '../../values/yaml/index.ts';
import { mediaRanges } from './negotiation.ts';
import { ProtobufDecoder } from './protobuf/decode-object.ts';
import { kubernetesMessages } from './protobuf/message-data.ts';
import { WireError } from './protobuf/wire-reader.ts';

/** Largest request body, as in API servers: twice the largest object of etcd, 1.5 MiB. Bytes. */
const MAX_BODY_BYTES = 3 * 1024 * 1024;

/** Maximum nesting, which bounds recursion. Large CustomResourceDefinitions have about 60 levels. */
export const MAX_BODY_DEPTH = 500;

/** Maximum number of values in a YAML body after aliases are expanded: as many as the largest JSON body has (`[1,1,…]`). */
const MAX_YAML_VALUES = MAX_BODY_BYTES / 2;

/** An escaped surrogate in JSON. Only these can be unpaired in a text that was UTF-8. */
const SURROGATE_ESCAPE = /\\u[dD][89a-fA-F]/;

/** Longest excerpt of a body in an error message. */
const MAX_QUOTED_BYTES = 200;

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
    // A loop that ends early would close the connection before the client has read the error.
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

/** The encoding of a body. */
export type BodyFormat = 'json' | 'yaml' | 'protobuf';

/** A decoding error, with the message of an API server's decoder. */
export class BodySyntaxError extends Error {
  override readonly name = 'BodySyntaxError';
}

/**
 * The format of a Content-Type; JSON without one.
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
 * @throws ApiError 400 with an API server's message when it is malformed.
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
    // A YAML flow mapping also begins with a brace.
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
  if (isNestedDeeper(text, MAX_BODY_DEPTH)) {
    throw tooDeep();
  }
  try {
    const value: unknown = parseJson(text);
    return SURROGATE_ESCAPE.test(text) ? jsonValueOf(value) : (value as JsonValue);
  } catch (error) {
    throw new BodySyntaxError(goSyntaxError(text, error), { cause: error });
  }
}

/** Go's message for truncated JSON; the parser's own message for other syntax errors. */
function goSyntaxError(text: string, error: unknown): string {
  const message = errorText(error);
  const isCutOff = text.trim() === '' || message.includes('end of JSON input') || message.startsWith('Unterminated');
  if (isCutOff || /^Expected .* at position (\d+)/.exec(message)?.[1] === String(text.length)) {
    return 'unexpected end of JSON input';
  }
  return message.slice(0, MAX_QUOTED_BYTES);
}

function tooDeep(): BodySyntaxError {
  return new BodySyntaxError(`the body is nested deeper than ${MAX_BODY_DEPTH} levels`);
}

function decodeYaml(text: string): JsonValue {
  const [value, ...others] = yamlDocuments(text);
  if (others.length > 0) {
    throw new BodySyntaxError('yaml: expected a single document in the body');
  }
  return jsonValueOf(value);
}

function yamlDocuments(text: string): unknown[] {
  try {
    return parseYaml(text, 'kubernetes', MAX_BODY_DEPTH);
  } catch (error) {
    if (!(error instanceof YamlSyntaxError)) {
      throw error;
    }
    const { line } = textPosition(text, error.offset);
    throw new BodySyntaxError(`yaml: line ${line}: ${error.message.slice(0, MAX_QUOTED_BYTES)}`, { cause: error });
  }
}

/**
 * Copies a parsed value to a JSON value: aliases are expanded, and unpaired surrogates replaced, as in Go's decoder. The
 * number of values is limited to that of the largest JSON body, also when aliases are written out.
 */
function jsonValueOf(value: unknown): JsonValue {
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
