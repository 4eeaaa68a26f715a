import { isUtf8 } from 'node:buffer';
import { EngineError, textPosition } from './errors.ts';
import type { EngineErrorCode, TextPosition } from './errors.ts';
import { JsonScanError, JsonScanner } from './json-scan.ts';
import type { JsonMember, JsonRecording } from './json-scan.ts';
import { isJsonObject, MAX_NESTING } from './json-text.ts';
import type { JsonObject, JsonValue } from './json-text.ts';

/**
 * Largest body. An UPDATE carries two objects of at most 3 MiB each (what etcd's request limit lets the API server
 * store, with room for JSON), and 1 MiB is left for the rest: 2 × 3 + 1. The same bound
 * as controller-runtime's. Bytes.
 */
export const MAX_REVIEW_BYTES = 7 * 1024 * 1024;

const QUOTE = 0x22;
const OPEN_BRACE = 0x7b;
const FIRST_OF_NULL = 0x6e;

/** Group, version and kind as the API server names them; the group of core kinds is "". */
export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** A review that was read: what the engine itself needs, and the text that guests get. */
export interface Review {
  /** Empty for a raw request without a uid. */
  readonly uid: string;
  /** The request as JSON text in UTF-8: for an AdmissionReview only the fields of contract 3.3, without nulls. */
  readonly requestJson: Buffer;
  /**
   * What a mutation is compared with: `object`, or the whole raw request. Undefined when `object` is null (DELETE).
   * Built when it is first asked for: most evaluations change nothing.
   */
  readonly object: JsonValue | undefined;
  /** Undefined for raw requests. */
  readonly admission?: AdmissionFacts;
}

/** What metrics, logs and exemptions look at. */
export interface AdmissionFacts {
  /** `requestKind`: the kind that the client asked for; `kind` when the API server does not say. */
  readonly kind: GroupVersionKind;
  readonly operation: string;
  readonly namespace?: string;
}

/** Why a body is no review: the HTTP status and the message that the caller gets. */
export class ReviewError extends EngineError {
  readonly status: number;

  constructor(code: EngineErrorCode, status: number, message: string, position?: TextPosition) {
    super(code, message, position === undefined ? {} : { position });
    this.status = status;
  }
}

/** What a field of the request must be; undefined when it is. Optional fields that are null are dropped. */
type FieldCheck = (body: ReviewBody, member: JsonMember) => string | undefined;

const REQUEST_FIELDS: ReadonlyMap<string, FieldCheck> = new Map<string, FieldCheck>([
  ['uid', text],
  ['kind', groupVersion('kind')],
  ['resource', groupVersion('resource')],
  ['subResource', text],
  ['requestKind', groupVersion('kind')],
  ['requestResource', groupVersion('resource')],
  ['requestSubResource', text],
  ['name', text],
  ['namespace', text],
  ['operation', text],
  ['userInfo', object],
  ['object', object],
  ['oldObject', object],
  ['dryRun', (body, member) => (typeof body.value(member) === 'boolean' ? undefined : 'true or false')],
  ['options', object],
]);
const REQUIRED_FIELDS = ['uid', 'kind', 'resource', 'operation', 'userInfo'];

/**
 * Reads the body of `POST /validate/{id}` and `POST /audit/{id}`.
 * Throws {@link ReviewError}: 413 too large, 400 empty, not UTF-8 or not JSON, 422 another shape or nested too deep.
 */
export function parseAdmissionReview(body: Uint8Array): Review {
  const review = readBody(body);
  checkEnvelope(review);
  const { request } = review;
  const whole = review.members.get('request');
  if (request === undefined || whole === undefined) {
    throw wrongShape('request', 'an object', whole && review.value(whole));
  }
  for (const field of REQUIRED_FIELDS) {
    const member = request.get(field);
    if (member === undefined || review.isNull(member)) {
      throw wrongShape(`request.${field}`, 'a value', member && null);
    }
  }
  const kept: JsonMember[] = [];
  for (const [field, member] of request) {
    const check = REQUEST_FIELDS.get(field);
    if (check !== undefined && !review.isNull(member)) {
      const expected = check(review, member);
      if (expected !== undefined) {
        throw wrongShape(`request.${field}`, expected, review.value(member));
      }
      kept.push(member);
    }
  }
  return new ReadReview(review, {
    uid: review.text(request, 'uid') ?? '',
    requestJson: kept.length === review.requestSize ? review.slice(whole) : review.objectOf(kept),
    object: request.get('object'),
    admission: factsOf(review, request),
  });
}

/** Reads the body of `POST /validate_raw/{id}`: `{"request": …}` with any value. Throws as {@link parseAdmissionReview}. */
export function parseRawReview(body: Uint8Array): Review {
  const review = readBody(body);
  const request = review.members.get('request');
  if (request === undefined) {
    throw wrongShape('request', 'a value', undefined);
  }
  return new ReadReview(review, {
    uid: (review.request && review.text(review.request, 'uid')) ?? '',
    requestJson: review.slice(request),
    object: request,
    admission: undefined,
  });
}

/** A review whose object is built when it is asked for. */
class ReadReview implements Review {
  readonly uid: string;
  readonly requestJson: Buffer;
  readonly admission?: AdmissionFacts;
  readonly #body: ReviewBody;
  readonly #member: JsonMember | undefined;
  #object: JsonValue | undefined;

  constructor(
    body: ReviewBody,
    parts: {
      readonly uid: string;
      readonly requestJson: Buffer;
      readonly object: JsonMember | undefined;
      readonly admission: AdmissionFacts | undefined;
    },
  ) {
    this.uid = parts.uid;
    this.requestJson = parts.requestJson;
    if (parts.admission !== undefined) {
      this.admission = parts.admission;
    }
    this.#body = body;
    this.#member = parts.object;
  }

  get object(): JsonValue | undefined {
    if (this.#object === undefined && this.#member !== undefined) {
      const value = this.#body.value(this.#member);
      // A raw request may be null; an object that is null is none.
      this.#object = value === null && this.admission !== undefined ? undefined : value;
    }
    return this.#object;
  }
}

type Members = ReadonlyMap<string, JsonMember>;

/** A body that is JSON, with an object at the top. */
class ReviewBody {
  /** Whether the members mean the same to every parser: no key is written with escapes, none of interest twice. */
  readonly isPlain: boolean;
  readonly members: Members;
  /** Undefined when there is no request, or one that is no object. */
  readonly request: Members | undefined;
  /** How many members the request has. */
  readonly requestSize: number;
  readonly #bytes: Buffer;

  constructor(bytes: Buffer, members: MemberNotes, request: MemberNotes) {
    this.#bytes = bytes;
    this.isPlain = members.isPlain && request.isPlain;
    this.members = members.known;
    this.requestSize = request.count;
    const whole = members.known.get('request');
    this.request = whole !== undefined && this.isObject(whole) ? request.known : undefined;
  }

  /** The value's text, as it was written. */
  slice({ start, end }: JsonMember): Buffer {
    return this.#bytes.subarray(start, end);
  }

  value({ start, end }: JsonMember): JsonValue {
    return JSON.parse(this.#bytes.toString('utf8', start, end)) as JsonValue;
  }

  /** The text that a member is, if it is one. */
  text(members: Members, key: string): string | undefined {
    const member = members.get(key);
    return member !== undefined && this.#bytes[member.start] === QUOTE ? (this.value(member) as string) : undefined;
  }

  isNull({ start }: JsonMember): boolean {
    return this.#bytes[start] === FIRST_OF_NULL;
  }

  isText({ start }: JsonMember): boolean {
    return this.#bytes[start] === QUOTE;
  }

  isObject({ start }: JsonMember): boolean {
    return this.#bytes[start] === OPEN_BRACE;
  }

  /** An object of some members of an object, cut out of the body as they are. */
  objectOf(members: readonly JsonMember[]): Buffer {
    // Two brackets, and a comma behind each but the last.
    const size = members.reduce((sum, { keyStart, end }) => sum + (end - keyStart) + 2, 2);
    const object = Buffer.allocUnsafe(members.length === 0 ? size : size - 1);
    let at = object.write('{');
    for (const { keyStart, end } of members) {
      at += this.#bytes.copy(object, at, keyStart - 1, end);
      at += at + 1 < object.length ? object.write(',', at) : 0;
    }
    object.write('}', at);
    return object;
  }
}

function readBody(body: Uint8Array): ReviewBody {
  if (body.byteLength > MAX_REVIEW_BYTES) {
    const message = `the body is too large: expected at most ${MAX_REVIEW_BYTES} bytes, got ${body.byteLength}`;
    throw new ReviewError('review-too-large', 413, message);
  }
  if (body.byteLength === 0) {
    throw new ReviewError('review-malformed', 400, 'the body is empty: expected an AdmissionReview as JSON');
  }
  if (!isUtf8(body)) {
    throw new ReviewError('review-malformed', 400, 'the body is not UTF-8: expected an AdmissionReview as JSON');
  }
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  // Written anew, no key is there twice or with escapes, and the text means the same to the engine and to every guest.
  const review = scanReview(bytes);
  return review.isPlain ? review : scanReview(Buffer.from(JSON.stringify(JSON.parse(bytes.toString()))));
}

/** The members of an object that are of interest. */
class MemberNotes {
  readonly known = new Map<string, JsonMember>();
  /** All members, those that are of no interest included. */
  count = 0;
  /** Whether no key is written with escapes, and none of interest twice. */
  isPlain = true;
  readonly #bytes: Buffer;
  readonly #isKnown: (key: string) => boolean;

  constructor(bytes: Buffer, isKnown: (key: string) => boolean) {
    this.#bytes = bytes;
    this.#isKnown = isKnown;
  }

  note(member: JsonMember): void {
    const key = this.#bytes.toString('utf8', member.keyStart, member.keyEnd);
    this.count += 1;
    this.isPlain &&= !key.includes('\\') && !this.known.has(key);
    if (this.#isKnown(key)) {
      this.known.set(key, member);
    }
  }
}

const REVIEW_FIELDS: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'request']);

/** Finds the members of the review and of its request. */
function scanReview(bytes: Buffer): ReviewBody {
  const members = new MemberNotes(bytes, (key) => REVIEW_FIELDS.has(key));
  const request = new MemberNotes(bytes, (key) => REQUEST_FIELDS.has(key));
  const inRequest: JsonRecording = { note: (member) => request.note(member) };
  const start = scan(bytes, {
    note: (member) => members.note(member),
    inside: (from, to) => (bytes.toString('utf8', from, to) === 'request' ? inRequest : undefined),
  });
  if (bytes[start] !== OPEN_BRACE) {
    const found = show(JSON.parse(bytes.toString()));
    throw new ReviewError('review-wrong-shape', 422, `the body has the wrong shape: expected an object, got ${found}`);
  }
  return new ReviewBody(bytes, members, request);
}

/** Scans a body; nothing of it is built, however high its tower of brackets. Gives where its value starts. */
function scan(bytes: Buffer, recording: JsonRecording): number {
  try {
    return new JsonScanner(bytes, MAX_NESTING).document(recording);
  } catch (error) {
    if (!(error instanceof JsonScanError)) {
      throw error;
    }
    if (error.reason === 'nesting') {
      const message = `the body is nested too deep: expected at most ${MAX_NESTING} levels`;
      throw new ReviewError('nested-too-deep', 422, message);
    }
    const source = bytes.toString();
    const offset = bytes.toString('utf8', 0, error.offset).length;
    const { line, column } = textPosition(source, offset);
    const found = offset < source.length ? `unexpected ${characterAt(source, offset)}` : 'unexpected end';
    throw new ReviewError('review-malformed', 400, `the body is not JSON: ${found} at line ${line}, column ${column}`);
  }
}

function checkEnvelope(review: ReviewBody): void {
  for (const [key, expected] of [
    ['kind', 'AdmissionReview'],
    ['apiVersion', 'admission.k8s.io/v1'],
  ] as const) {
    const member = review.members.get(key);
    const value = member && review.value(member);
    if (member !== undefined && value !== expected) {
      throw wrongShape(key, JSON.stringify(expected), value);
    }
  }
}

function text(body: ReviewBody, member: JsonMember): string | undefined {
  return body.isText(member) ? undefined : 'text';
}

function object(body: ReviewBody, member: JsonMember): string | undefined {
  return body.isObject(member) ? undefined : 'an object';
}

function groupVersion(last: 'kind' | 'resource'): FieldCheck {
  return (body, member) => {
    const value = body.value(member);
    return isJsonObject(value) &&
      typeof value.group === 'string' &&
      typeof value.version === 'string' &&
      typeof value[last] === 'string'
      ? undefined
      : `an object with the texts group, version and ${last}`;
  };
}

function factsOf(body: ReviewBody, request: Members): AdmissionFacts {
  const requestKind = request.get('requestKind');
  const member = requestKind === undefined || body.isNull(requestKind) ? request.get('kind') : requestKind;
  const { group, version, kind } = (member && body.value(member)) as JsonObject & GroupVersionKind;
  const namespace = body.text(request, 'namespace');
  return {
    kind: { group, version, kind },
    operation: body.text(request, 'operation') ?? '',
    ...(namespace === undefined ? {} : { namespace }),
  };
}

function wrongShape(field: string, expected: string, value: unknown): ReviewError {
  const message = `the review has the wrong shape: expected ${field} to be ${expected}, got ${show(value)}`;
  return new ReviewError('review-wrong-shape', 422, message);
}

/** The type of a value, and the value of short texts: bodies may hold Secrets, so no more than that. */
function show(value: unknown): string {
  if (value === undefined) {
    return 'nothing';
  }
  if (value === null) {
    return 'null';
  }
  if (Array.isArray(value)) {
    return 'a list';
  }
  return typeof value === 'string' && value.length <= 40 ? JSON.stringify(value) : `a value of type ${typeof value}`;
}

function characterAt(source: string, offset: number): string {
  return JSON.stringify(String.fromCodePoint(source.codePointAt(offset) ?? 0));
}
