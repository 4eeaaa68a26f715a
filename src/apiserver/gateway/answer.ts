// Writes responses: JSON or YAML, compressed if large, with the headers of the Kubernetes API.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { dump } from 'js-yaml';
import type { ApiError } from '../../cluster/index.ts';
import { PLAIN_JSON } from './negotiation.ts';
import type { Representation } from './negotiation.ts';
import { parseJson } from '../../values/index.ts';

/** Responses of at least this size are compressed, as in API servers. Bytes. */
const GZIP_FROM_BYTES = 128 * 1024;

/** The fastest level, because responses go over loopback or a local network. */
const GZIP_LEVEL = 1;

/** Total size of a response's warnings, as in API servers; more are dropped. Bytes. */
const MAX_WARNINGS_BYTES = 4 * 1024;

/** The response to a request. */
export interface GatewayAnswer {
  readonly status: number;
  /** Objects are written as JSON or YAML, texts and bytes unchanged. */
  readonly body: object | string | Buffer;
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const compress = promisify(gzip);

/** Sets the headers that all responses have. */
export function setCommonHeaders(response: ServerResponse): void {
  response.setHeader('audit-id', randomUUID());
  response.setHeader('cache-control', 'no-cache, private');
}

/**
 * Writes a response. Resolves when it is written; a closed connection is not an error.
 * @param hold called with the size of the body before it is written, and again when it is compressed. Default: nothing
 * @throws what `hold` throws
 */
export async function send(
  request: IncomingMessage,
  response: ServerResponse,
  answer: GatewayAnswer,
  representation: Representation = PLAIN_JSON,
  hold: (bytes: number) => void = () => {},
): Promise<void> {
  const { body: content } = answer;
  const isObject = typeof content === 'object' && !Buffer.isBuffer(content);
  const text = isObject ? textOf(content, representation) : content;
  const plain = typeof text === 'string' ? Buffer.from(text) : text;
  hold(plain.length);
  const isCompressed = plain.length >= GZIP_FROM_BYTES && acceptsGzip(request);
  const body = isCompressed ? await compress(plain, { level: GZIP_LEVEL }) : plain;
  if (response.destroyed || response.headersSent) {
    return;
  }
  hold(body.length);
  const type = isObject ? `application/${representation.format}` : 'text/plain; charset=utf-8';
  response.writeHead(answer.status, {
    'content-type': answer.contentType ?? type,
    ...(isCompressed ? { 'content-encoding': 'gzip', vary: 'Accept-Encoding' } : {}),
    ...answer.headers,
    'content-length': body.length,
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}

function textOf(body: object, { format, isPretty }: Representation): string {
  if (format === 'yaml') {
    return dump(parseJson(JSON.stringify(body)), { sortKeys: true, lineWidth: -1, noRefs: true });
  }
  return `${isPretty ? JSON.stringify(body, null, 2) : JSON.stringify(body)}\n`;
}

function acceptsGzip(request: IncomingMessage): boolean {
  const accepted = request.headers['accept-encoding'];
  return typeof accepted === 'string' && accepted.split(',').some((part) => part.trim().split(';', 1)[0] === 'gzip');
}

/** The response for an error: a Status. */
export function errorAnswer(error: ApiError): GatewayAnswer {
  // A webhook's Status may have details with values of any type.
  const retryAfter: unknown = error.details?.retryAfterSeconds;
  return {
    status: error.code,
    body: error.toStatus(),
    ...(Number.isSafeInteger(retryAfter) ? { headers: { 'retry-after': String(retryAfter) } } : {}),
  };
}

/** `Warning: 299 - "text"` headers (RFC 7234 section 5.5); kubectl shows them. */
export function setWarnings(response: ServerResponse, warnings: readonly string[]): void {
  let room = MAX_WARNINGS_BYTES;
  const headers: string[] = [];
  for (const warning of new Set(warnings)) {
    const printable = Array.from(warning.toWellFormed(), (character) => (isControl(character) ? ' ' : character)).join(
      '',
    );
    const quoted = printable.replaceAll('\\', '\\\\').replaceAll('"', '\\"');
    // Node writes headers as Latin-1; clients read UTF-8.
    const header = Buffer.from(`299 - "${quoted}"`).toString('latin1');
    room -= header.length;
    if (room < 0) {
      break;
    }
    headers.push(header);
  }
  if (headers.length > 0) {
    response.setHeader('warning', headers);
  }
}

function isControl(character: string): boolean {
  const code = character.codePointAt(0) ?? 0;
  return code < 0x20 || code === 0x7f;
}
