// Parses responses of an API server into objects and errors.
import { isJsonObject } from '../../resources/index.ts';
import { ApiError } from '../api-error.ts';
import type { ApiErrorReason, StatusDetails } from '../api-error.ts';
import { ClusterError } from '../errors.ts';
import { retryAfterMs } from './retry-after.ts';
import { parseJson } from '../../values/index.ts';

/** Longest response: half of V8's longest string, enough for 50,000 pods in one list. Larger lists need pages. */
export const MAX_ANSWER_BYTES = 256 * 1024 ** 2;

/** A complete response. */
export interface ApiAnswer {
  /** HTTP status. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** In lower case, with its parameters; empty if absent. */
  readonly contentType: string;
  readonly body: Buffer;
}

interface Generic {
  readonly reason: ApiErrorReason;
  readonly message: string;
}

/** kubectl's messages for bare status codes; other codes have no reason. */
const GENERIC = new Map<number, Generic>([
  [400, { reason: 'BadRequest', message: 'the server rejected our request for an unknown reason' }],
  [401, { reason: 'Unauthorized', message: 'the server has asked for the client to provide credentials' }],
  [403, { reason: 'Forbidden', message: 'the server does not allow access to the requested resource' }],
  [404, { reason: 'NotFound', message: 'the server could not find the requested resource' }],
  [405, { reason: 'MethodNotAllowed', message: 'the server does not allow this method on the requested resource' }],
  [
    406,
    {
      reason: 'NotAcceptable',
      message: 'the server was unable to respond with a content type that the client supports',
    },
  ],
  [409, { reason: 'Conflict', message: 'the server reported a conflict' }],
  [410, { reason: 'Gone', message: 'the requested resource is gone' }],
  [413, { reason: 'RequestEntityTooLarge', message: 'Request entity too large: limit is 3145728' }],
  [
    415,
    {
      reason: 'UnsupportedMediaType',
      message: 'the body of the request was in an unknown format - accepted media types include: application/json',
    },
  ],
  [422, { reason: 'Invalid', message: 'the server rejected our request due to an error in our request' }],
  [
    429,
    {
      reason: 'TooManyRequests',
      message: 'the server has received too many requests and has asked us to try again later',
    },
  ],
  [500, { reason: 'InternalError', message: 'an error on the server has prevented the request from succeeding' }],
  [503, { reason: 'ServiceUnavailable', message: 'the server is currently unable to handle the request' }],
  [
    504,
    {
      reason: 'Timeout',
      message:
        'the server was unable to return a response in the time allotted, but may still be processing the request',
    },
  ],
]);

const REASONS = new Set<string>([
  ...Array.from(GENERIC.values(), ({ reason }) => reason),
  'AlreadyExists',
  'Expired',
  'ServerTimeout',
] satisfies string[]);

function isReason(text: unknown): text is ApiErrorReason {
  return typeof text === 'string' && REASONS.has(text);
}

/** The error of a `Status` object. Malformed fields are left out. */
export function errorOfStatus(status: Readonly<Record<string, unknown>>, httpStatus: number): ApiError {
  const code = typeof status['code'] === 'number' && status['code'] >= 400 ? status['code'] : httpStatus;
  const generic = GENERIC.get(code);
  const reason = isReason(status['reason']) ? status['reason'] : 'Unknown';
  const message =
    typeof status['message'] === 'string' && status['message'] !== ''
      ? status['message']
      : (generic?.message ?? `the server answered with status ${code}`);
  const details = isJsonObject(status['details']) ? (status['details'] as StatusDetails) : undefined;
  return new ApiError(code, reason, message, details);
}

/**
 * The error of a response with a status of 400 or more. API servers respond with plain text in some cases (a group that
 * they do not serve); any other body is not from an API server.
 */
export function errorOfAnswer(answer: ApiAnswer, request: string): ApiError | ClusterError {
  if (answer.contentType.startsWith('application/json')) {
    const parsed = tryParse(answer.body);
    if (isJsonObject(parsed) && parsed['kind'] === 'Status') {
      return withRetryAfter(errorOfStatus(parsed, answer.status), answer);
    }
  }
  const text = excerpt(answer.body);
  if (answer.contentType === '' || answer.contentType.startsWith('text/plain')) {
    const generic = GENERIC.get(answer.status);
    const message = generic?.message ?? `the server answered with status ${answer.status}`;
    // A text that only repeats the status adds nothing.
    const detail =
      (answer.status === 400 || answer.status >= 500) && text !== '' ? `${message} (${JSON.stringify(text)})` : message;
    return withRetryAfter(new ApiError(answer.status, generic?.reason ?? 'Unknown', detail), answer);
  }
  return new ClusterError(
    'answer-malformed',
    `${request}: expected an answer of an API server, got status ${answer.status} with ${answer.contentType} (${JSON.stringify(text)}); is there a proxy in between, or another server at this address?`,
  );
}

/** Copies Retry-After from the header to the details, where callers look for it. */
function withRetryAfter(error: ApiError, { headers }: ApiAnswer): ApiError {
  const header = headers['retry-after'];
  const wait = typeof header === 'string' ? retryAfterMs(header, Date.now()) : undefined;
  if (wait === undefined || error.details?.retryAfterSeconds !== undefined) {
    return error;
  }
  return new ApiError(error.code, error.reason, error.message, {
    ...error.details,
    retryAfterSeconds: Math.ceil(wait / 1000),
  });
}

/** The JSON of a response. */
export function jsonOf(answer: ApiAnswer, request: string): unknown {
  if (!answer.contentType.startsWith('application/json')) {
    throw new ClusterError(
      'answer-malformed',
      `${request}: expected JSON, got ${answer.contentType === '' ? 'no content type' : answer.contentType} (${JSON.stringify(excerpt(answer.body))}); is this the address of an API server?`,
    );
  }
  const parsed = tryParse(answer.body);
  if (parsed === undefined) {
    throw new ClusterError(
      'answer-malformed',
      `${request}: expected JSON, got ${answer.body.length} bytes that are none (${JSON.stringify(excerpt(answer.body))}); the answer may have been cut`,
    );
  }
  return parsed;
}

/** Enough of a body to recognise it in a message. */
const EXCERPT_BYTES = 200;

function excerpt(body: Buffer): string {
  return body.toString('utf8', 0, EXCERPT_BYTES).trim();
}

function tryParse(body: Buffer): unknown {
  try {
    return parseJson(body.toString('utf8'));
  } catch {
    return undefined;
  }
}

/** The texts of `Warning` headers (RFC 7234, 5.5), of which API servers send code 299. */
export function warningsOf(header: string | string[] | undefined): string[] {
  const warnings: string[] = [];
  for (const line of header === undefined ? [] : [header].flat()) {
    let rest = line;
    for (;;) {
      // Code, agent, quoted text; a header may contain several, separated by commas.
      const match = /^[\s,]*\d{3} \S+ "((?:[^"\\]|\\.)*)"(?: "[^"]*")?/.exec(rest);
      if (match === null) {
        break;
      }
      warnings.push((match[1] ?? '').replaceAll(/\\(.)/g, '$1'));
      rest = rest.slice(match[0].length);
    }
  }
  return warnings;
}
