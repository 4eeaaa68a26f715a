import { isUtf8 } from 'node:buffer';
import { MAX_REVIEW_BYTES } from '../definition/limits.ts';
import { EngineError } from '../values/errors.ts';
import { parseJson, textPosition } from '../../values/index.ts';
import type { EngineErrorCode } from '../values/errors.ts';
import type { TextPosition } from '../../values/index.ts';
import { FieldNames, hasEscape } from '../values/field-names.ts';
import { JsonScanError, JsonScanner } from '../values/json-scan.ts';
import type { JsonMember, MemberRecorder } from '../values/json-scan.ts';
import { MAX_NESTING } from '../values/json-text.ts';
import type { JsonValue } from '../values/json-text.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_BRACE = 0x7b;
const FIRST_OF_FALSE = 0x66;
const FIRST_OF_NULL = 0x6e;
const FIRST_OF_TRUE = 0x74;

/** Codes of {@link ReviewError}. */
export type ReviewErrorCode = Extract<EngineErrorCode, `review-${string}` | 'nested-too-deep'>;

/** Why a body is not a review. */
export class ReviewError extends EngineError {
  declare readonly code: ReviewErrorCode;

  constructor(code: ReviewErrorCode, message: string, position?: TextPosition) {
    super(code, message, position === undefined ? {} : { position });
  }
}

/** Members of an object, by key. */
export type Members = ReadonlyMap<string, JsonMember>;

/** A JSON body with an object at the top. */
export class ReviewBody {
  /** Whether all parsers read the members alike: no key contains escapes, and no key of interest is repeated. */
  readonly isPlain: boolean;
  readonly members: Members;
  /** Undefined when the request is missing or not an object. */
  readonly request: Members | undefined;
  /** Number of members of the request. */
  readonly requestSize: number;
  readonly #bytes: Buffer;
  readonly #small: { readonly member: JsonMember; readonly value: JsonValue }[] = [];

  constructor(bytes: Buffer, members: RecordedMembers, request: RecordedMembers) {
    this.#bytes = bytes;
    this.isPlain = members.isPlain && request.isPlain;
    this.members = members.known;
    this.requestSize = request.count;
    const whole = members.known.get('request');
    this.request = whole !== undefined && this.isObject(whole) ? request.known : undefined;
  }

  /** The value's JSON text, unchanged. */
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
   * The value of a small member that is read repeatedly, or that another member is likely to equal, such as `kind` and
   * `requestKind`. Cached, so it must not be changed.
   */
  smallValue(member: JsonMember): JsonValue {
    for (const known of this.#small) {
      if (this.#areEqual(known.member, member)) {
        return known.value;
      }
    }
    const value = this.value(member);
    this.#small.push({ member, value });
    return value;
  }

  /** The member's value if it is a string. */
  text(members: Members, key: string): string | undefined {
    const member = members.get(key);
    return member !== undefined && this.isString(member) ? (this.value(member) as string) : undefined;
  }

  isNull({ start }: JsonMember): boolean {
    return this.#bytes[start] === FIRST_OF_NULL;
  }

  isString({ start }: JsonMember): boolean {
    return this.#bytes[start] === QUOTE;
  }

  isObject({ start }: JsonMember): boolean {
    return this.#bytes[start] === OPEN_BRACE;
  }

  isBoolean({ start }: JsonMember): boolean {
    return this.#bytes[start] === FIRST_OF_TRUE || this.#bytes[start] === FIRST_OF_FALSE;
  }

  /** An object with some of the members, in their order, copied from the body. */
  objectOf(members: readonly JsonMember[]): Buffer {
    const runs = this.#runsOf(members);
    // Two brackets, and a comma after each member but the last.
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

  /** Like `objectOf`, with one value replaced. */
  objectWith(members: readonly JsonMember[], changed: JsonMember | undefined, text: string): Buffer {
    const parts = members.map((member) => {
      const { keyStart, start, end } = member;
      const own = this.#bytes.toString('utf8', keyStart - 1, member === changed ? start : end);
      return member === changed ? own + text : own;
    });
    return Buffer.from(`{${parts.join(',')}}`);
  }

  /** Adjacent members are copied at once: these are the ranges of the body to copy. */
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

  #areEqual(one: JsonMember, other: JsonMember): boolean {
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

/** Parses a body; of the request, only the given fields are recorded. Throws {@link ReviewError}. */
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
  // Serialized again, no key is repeated or contains escapes, so the engine and every guest read the same.
  const review = scanReview(bytes, requestFields);
  return review.isPlain ? review : scanReview(Buffer.from(JSON.stringify(parseJson(bytes.toString()))), requestFields);
}

/** The members of interest of an object. */
class RecordedMembers {
  readonly known = new Map<string, JsonMember>();
  /** Number of all members, including those of no interest. */
  count = 0;
  /** Whether no key contains escapes, and no key of interest is repeated. */
  isPlain = true;
  readonly #bytes: Buffer;
  readonly #fields: FieldNames;

  constructor(bytes: Buffer, fields: FieldNames) {
    this.#bytes = bytes;
    this.#fields = fields;
  }

  record(member: JsonMember): void {
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

/** Records the members of the review and of its request. */
function scanReview(bytes: Buffer, requestFields: FieldNames): ReviewBody {
  const members = new RecordedMembers(bytes, REVIEW_FIELDS);
  const request = new RecordedMembers(bytes, requestFields);
  const inRequest: MemberRecorder = { record: (member) => request.record(member) };
  const start = scan(bytes, {
    record: (member) => members.record(member),
    nested: (from, to) => (REVIEW_FIELDS.find(bytes, from, to) === 'request' ? inRequest : undefined),
  });
  if (bytes[start] !== OPEN_BRACE) {
    const found = show(parseJson(bytes.toString()));
    throw new ReviewError('review-wrong-shape', `the body has the wrong shape: expected an object, got ${found}`);
  }
  return new ReviewBody(bytes, members, request);
}

/** Scans a body without building values, so deep nesting is harmless. Returns the value's offset. */
function scan(bytes: Buffer, recording: MemberRecorder): number {
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

/** The type of a value, and short strings themselves. Not more, because bodies may contain Secrets. */
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
