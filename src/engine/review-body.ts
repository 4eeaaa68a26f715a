import { isUtf8 } from 'node:buffer';
import { EngineError, textPosition } from './errors.ts';
import type { EngineErrorCode, TextPosition } from './errors.ts';
import { FieldNames, hasEscape } from './field-names.ts';
import { JsonScanError, JsonScanner } from './json-scan.ts';
import type { JsonMember, JsonRecording } from './json-scan.ts';
import { MAX_NESTING } from './json-text.ts';
import type { JsonValue } from './json-text.ts';
import { parseJson } from '../values/index.ts';

/**
 * Largest body. An UPDATE carries two objects of at most 3 MiB each (what etcd's request limit lets the API server
 * store, with room for JSON), and 1 MiB is left for the rest: 2 × 3 + 1. The same bound
 * as controller-runtime's. Bytes.
 */
export const MAX_REVIEW_BYTES = 7 * 1024 * 1024;

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_BRACE = 0x7b;
const FIRST_OF_FALSE = 0x66;
const FIRST_OF_NULL = 0x6e;
const FIRST_OF_TRUE = 0x74;

/** Codes of {@link ReviewError}. */
export type ReviewErrorCode = Extract<EngineErrorCode, `review-${string}` | 'nested-too-deep'>;

/** Why a body is no review. */
export class ReviewError extends EngineError {
  declare readonly code: ReviewErrorCode;

  constructor(code: ReviewErrorCode, message: string, position?: TextPosition) {
    super(code, message, position === undefined ? {} : { position });
  }
}

/** Members of an object, by key. */
export type Members = ReadonlyMap<string, JsonMember>;

/** A body that is JSON, with an object at the top. */
export class ReviewBody {
  /** Whether the members mean the same to every parser: no key is written with escapes, none of interest twice. */
  readonly isPlain: boolean;
  readonly members: Members;
  /** Undefined when there is no request, or one that is no object. */
  readonly request: Members | undefined;
  /** How many members the request has. */
  readonly requestSize: number;
  readonly #bytes: Buffer;
  readonly #small: { readonly member: JsonMember; readonly value: JsonValue }[] = [];

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
    if (this.#bytes[start] === QUOTE) {
      const text = this.#bytes.toString('utf8', start + 1, end - 1);
      if (!text.includes('\\')) {
        return text;
      }
    }
    return parseJson(this.#bytes.toString('utf8', start, end)) as JsonValue;
  }

  /**
   * The value of a small member that is looked at more than once, or is likely to be written twice, as `kind` and
   * `requestKind` are. Not to be changed.
   */
  smallValue(member: JsonMember): JsonValue {
    for (const known of this.#small) {
      if (this.#areAlike(known.member, member)) {
        return known.value;
      }
    }
    const value = this.value(member);
    this.#small.push({ member, value });
    return value;
  }

  /** The text that a member is, if it is one. */
  text(members: Members, key: string): string | undefined {
    const member = members.get(key);
    return member !== undefined && this.isText(member) ? (this.value(member) as string) : undefined;
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

  isBoolean({ start }: JsonMember): boolean {
    return this.#bytes[start] === FIRST_OF_TRUE || this.#bytes[start] === FIRST_OF_FALSE;
  }

  /** An object of some members of an object, in their order, cut out of the body as they are. */
  objectOf(members: readonly JsonMember[]): Buffer {
    const runs = this.#runsOf(members);
    // Two brackets, and a comma behind each but the last.
    const size = runs.reduce((sum, { from, to }) => sum + (to - from) + 1, 2);
    const object = Buffer.allocUnsafe(runs.length === 0 ? size : size - 1);
    let at = object.write('{');
    for (const { from, to } of runs) {
      at += this.#bytes.copy(object, at, from, to);
      at += at + 1 < object.length ? object.write(',', at) : 0;
    }
    object.write('}', at);
    return object;
  }

  /** The same with another value for one of them. */
  objectWith(members: readonly JsonMember[], changed: JsonMember | undefined, text: string): Buffer {
    const parts = members.map((member) => {
      const { keyStart, start, end } = member;
      const own = this.#bytes.toString('utf8', keyStart - 1, member === changed ? start : end);
      return member === changed ? own + text : own;
    });
    return Buffer.from(`{${parts.join(',')}}`);
  }

  /** Stretches of the body that hold the members: those with nothing but a comma in between are copied at once. */
  #runsOf(members: readonly JsonMember[]): readonly { readonly from: number; readonly to: number }[] {
    const runs: { readonly from: number; to: number }[] = [];
    for (const { keyStart, end } of members) {
      const from = keyStart - 1;
      const last = runs.at(-1);
      if (last !== undefined && last.to + 1 === from && this.#bytes[last.to] === COMMA) {
        last.to = end;
      } else {
        runs.push({ from, to: end });
      }
    }
    return runs;
  }

  #areAlike(one: JsonMember, other: JsonMember): boolean {
    const length = one.end - one.start;
    if (length !== other.end - other.start) {
      return false;
    }
    for (let index = 0; index < length; index++) {
      if (this.#bytes[one.start + index] !== this.#bytes[other.start + index]) {
        return false;
      }
    }
    return true;
  }
}

/** Reads a body; of the request, only the given fields are noted. Throws {@link ReviewError}. */
export function readBody(body: Uint8Array, requestFields: FieldNames): ReviewBody {
  if (body.byteLength > MAX_REVIEW_BYTES) {
    const message = `the body is too large: expected at most ${MAX_REVIEW_BYTES} bytes, got ${body.byteLength}`;
    throw new ReviewError('review-too-large', message);
  }
  if (body.byteLength === 0) {
    throw new ReviewError('review-malformed', 'the body is empty: expected an AdmissionReview as JSON');
  }
  if (!isUtf8(body)) {
    throw new ReviewError('review-malformed', 'the body is not UTF-8: expected an AdmissionReview as JSON');
  }
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  // Written anew, no key is there twice or with escapes, and the text means the same to the engine and to every guest.
  const review = scanReview(bytes, requestFields);
  return review.isPlain ? review : scanReview(Buffer.from(JSON.stringify(parseJson(bytes.toString()))), requestFields);
}

/** The members of an object that are of interest. */
class MemberNotes {
  readonly known = new Map<string, JsonMember>();
  /** All members, those that are of no interest included. */
  count = 0;
  /** Whether no key is written with escapes, and none of interest twice. */
  isPlain = true;
  readonly #bytes: Buffer;
  readonly #fields: FieldNames;

  constructor(bytes: Buffer, fields: FieldNames) {
    this.#bytes = bytes;
    this.#fields = fields;
  }

  note(member: JsonMember): void {
    const { keyStart, keyEnd } = member;
    this.count += 1;
    const field = this.#fields.find(this.#bytes, keyStart, keyEnd);
    if (field === undefined) {
      this.isPlain &&= !hasEscape(this.#bytes, keyStart, keyEnd);
    } else {
      this.isPlain &&= !this.known.has(field);
      this.known.set(field, member);
    }
  }
}

const REVIEW_FIELDS = new FieldNames(['apiVersion', 'kind', 'request']);

/** Finds the members of the review and of its request. */
function scanReview(bytes: Buffer, requestFields: FieldNames): ReviewBody {
  const members = new MemberNotes(bytes, REVIEW_FIELDS);
  const request = new MemberNotes(bytes, requestFields);
  const inRequest: JsonRecording = { note: (member) => request.note(member) };
  const start = scan(bytes, {
    note: (member) => members.note(member),
    inside: (from, to) => (REVIEW_FIELDS.find(bytes, from, to) === 'request' ? inRequest : undefined),
  });
  if (bytes[start] !== OPEN_BRACE) {
    const found = show(parseJson(bytes.toString()));
    throw new ReviewError('review-wrong-shape', `the body has the wrong shape: expected an object, got ${found}`);
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
      throw new ReviewError('nested-too-deep', message);
    }
    const source = bytes.toString();
    const offset = bytes.toString('utf8', 0, error.offset).length;
    const { line, column } = textPosition(source, offset);
    const found = offset < source.length ? `unexpected ${characterAt(source, offset)}` : 'unexpected end';
    throw new ReviewError('review-malformed', `the body is not JSON: ${found} at line ${line}, column ${column}`);
  }
}

export function wrongShape(field: string, expected: string, value: unknown): ReviewError {
  const message = `the review has the wrong shape: expected ${field} to be ${expected}, got ${show(value)}`;
  return new ReviewError('review-wrong-shape', message);
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
