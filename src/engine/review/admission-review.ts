import type { GroupVersionKind, GroupVersionResource } from '../../resources/index.ts';
import { FieldNames } from '../values/field-names.ts';
import type { JsonMember } from '../values/json-scan.ts';
import { isJsonObject } from '../values/json-text.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import { readBody, wrongShape } from './review-body.ts';
import type { Members, ReviewBody } from './review-body.ts';
import { textOf, valueAt } from '../../values/index.ts';

/** A parsed review: the fields that the engine reads, and the JSON that guests get. */
export interface Review {
  /** Empty for a raw request without a uid. */
  readonly uid: string;
  /**
   * The request as JSON text in UTF-8. For an AdmissionReview: only the fields that Kubewarden passes on, without
   * nulls.
   */
  readonly requestJson: Buffer;
  /**
   * The object that a mutation is compared with: `object`, or the whole raw request. Undefined when `object` is null
   * (DELETE). Parsed on first access, because most evaluations change nothing.
   */
  readonly object: JsonValue | undefined;
  /** Undefined for raw requests. */
  readonly admission?: AdmissionFacts;
  /** The fields that policies are matched by. Parsed on first access; undefined for raw requests. */
  readonly target: ReviewTarget | undefined;
  /** Undefined when it is null or missing. Parsed on first access. */
  readonly oldObject: JsonObject | undefined;
  /** One of the objects as JSON text; undefined when it is null or missing. */
  objectJson(field: 'object' | 'oldObject'): string | undefined;
  /** Parsed on each call; undefined for raw requests. */
  requester(): Requester | undefined;
  /** `userInfo` of the request. Parsed on each call; undefined for raw requests. */
  userInfo(): JsonObject | undefined;
  /** The request as JSON text, without its objects. */
  factsJson(): string;
  /** A copy of the review with another object. */
  withObject(object: JsonObject): Review;
}

/** The fields that rules and selectors match. Missing texts are empty. */
export interface ReviewTarget {
  readonly operation: string;
  /** In the version that the API server converted the object to for the webhook. */
  readonly resource: GroupVersionResource;
  readonly subresource: string;
  /** As in the client's request. */
  readonly requestResource: GroupVersionResource;
  readonly requestSubresource: string;
  readonly namespace: string;
}

/** The fields that metrics, logs and exemptions read. */
export interface AdmissionFacts {
  /** `requestKind`: the kind in the client's request; `kind` when `requestKind` is missing. */
  readonly kind: GroupVersionKind;
  readonly operation: string;
  readonly namespace?: string;
}

/** Who requests it, and for which object: texts of any length. */
export interface Requester {
  /** The name of the object; its `generateName` and `*` while it has none. */
  readonly name: string;
  readonly user: string;
  readonly isDryRun: boolean;
}

/**
 * Says what a field of the request must be; undefined when the field is valid. Optional fields that are null are
 * dropped.
 */
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
  ['dryRun', (body, member) => (body.isBoolean(member) ? undefined : 'true or false')],
  ['options', object],
]);
const REQUEST_FIELD_NAMES = new FieldNames(REQUEST_FIELDS.keys());
const REQUIRED_FIELDS = ['uid', 'kind', 'resource', 'operation', 'userInfo'];

/**
 * Reads the body of `POST /validate/{id}` and `POST /audit/{id}`.
 * Throws {@link ReviewError}.
 */
export function parseAdmissionReview(body: Uint8Array): Review {
  const review = readBody(body, REQUEST_FIELD_NAMES);
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
    kept,
  });
}

/** Reads the body of `POST /validate_raw/{id}`: `{"request": …}` with any value. Throws as {@link parseAdmissionReview}. */
export function parseRawReview(body: Uint8Array): Review {
  const review = readBody(body, REQUEST_FIELD_NAMES);
  const request = review.members.get('request');
  if (request === undefined) {
    throw wrongShape('request', 'a value', undefined);
  }
  return new ReadReview(review, {
    uid: (review.request && review.text(review.request, 'uid')) ?? '',
    requestJson: review.slice(request),
    object: request,
    admission: undefined,
    kept: [],
  });
}

interface ReviewParts {
  readonly uid: string;
  readonly requestJson: Buffer;
  readonly object: JsonMember | undefined;
  readonly admission: AdmissionFacts | undefined;
  /** Members of the request that guests get. */
  readonly kept: readonly JsonMember[];
}

/** A review of a request body. Objects are parsed on first access. */
class ReadReview implements Review {
  readonly uid: string;
  readonly admission?: AdmissionFacts;
  readonly #body: ReviewBody;
  readonly #parts: ReviewParts;
  readonly #changed: JsonObject | undefined;
  #changedText: string | undefined;
  #requestJson: Buffer | undefined;
  #object: JsonValue | undefined;
  #oldObject: JsonValue | undefined;
  #target: ReviewTarget | undefined;

  /** `changed` replaces the object of the body. */
  constructor(body: ReviewBody, parts: ReviewParts, changed?: JsonObject) {
    this.uid = parts.uid;
    if (parts.admission !== undefined) {
      this.admission = parts.admission;
    }
    this.#body = body;
    this.#parts = parts;
    this.#changed = changed;
    this.#object = changed;
  }

  get requestJson(): Buffer {
    const { kept, object, requestJson } = this.#parts;
    const text = this.#changedObjectJson();
    this.#requestJson ??= text === undefined ? requestJson : this.#body.objectWith(kept, object, text);
    return this.#requestJson;
  }

  get object(): JsonValue | undefined {
    const { object } = this.#parts;
    if (this.#object === undefined && object !== undefined) {
      const value = this.#body.value(object);
      // A raw request may be null; an object that is null counts as missing.
      this.#object = value === null && this.admission !== undefined ? undefined : value;
    }
    return this.#object;
  }

  get oldObject(): JsonObject | undefined {
    if (this.#oldObject === undefined) {
      const member = this.#body.request?.get('oldObject');
      this.#oldObject = member === undefined ? null : this.#body.value(member);
    }
    return isJsonObject(this.#oldObject) ? this.#oldObject : undefined;
  }

  get target(): ReviewTarget | undefined {
    const { admission } = this;
    this.#target ??= admission && targetOf(this.#body, this.#body.request ?? new Map(), admission);
    return this.#target;
  }

  objectJson(field: 'object' | 'oldObject'): string | undefined {
    if (field === 'object' && this.#changed !== undefined) {
      return this.#changedObjectJson();
    }
    const member = this.#body.request?.get(field);
    return member === undefined || this.#body.isNull(member) ? undefined : this.#body.slice(member).toString();
  }

  requester(): Requester | undefined {
    const { request } = this.#body;
    if (this.admission === undefined || request === undefined) {
      return undefined;
    }
    const dryRun = request.get('dryRun');
    return {
      name: this.#body.text(request, 'name') || generatedName(this.object),
      user: userNameOf(this.userInfo()),
      isDryRun: dryRun !== undefined && this.#body.value(dryRun) === true,
    };
  }

  userInfo(): JsonObject | undefined {
    const member = this.admission && this.#body.request?.get('userInfo');
    const value = member && this.#body.value(member);
    return isJsonObject(value) ? value : undefined;
  }

  factsJson(): string {
    const { request } = this.#body;
    const objects = [request?.get('object'), request?.get('oldObject')];
    return this.#body.objectOf(this.#parts.kept.filter((member) => !objects.includes(member))).toString();
  }

  withObject(object: JsonObject): Review {
    return new ReadReview(this.#body, this.#parts, object);
  }

  /** Serialized on first access: usually no other policy follows the last change. */
  #changedObjectJson(): string | undefined {
    this.#changedText ??= this.#changed && JSON.stringify(this.#changed);
    return this.#changedText;
  }
}

/** The name of an object to create whose name the API server generates. */
export function generatedName(object: JsonValue | undefined): string {
  const prefix = textOf(valueAt(object, 'metadata', 'generateName'));
  return prefix === '' ? '' : `${prefix}*`;
}

/** The name of the user of a `userInfo`. */
export function userNameOf(userInfo: JsonValue | undefined): string {
  return textOf(valueAt(userInfo, 'username'));
}

const ENVELOPE = [
  ['kind', 'AdmissionReview'],
  ['apiVersion', 'admission.k8s.io/v1'],
] as const;

function checkEnvelope(review: ReviewBody): void {
  for (const [key, expected] of ENVELOPE) {
    const member = review.members.get(key);
    const value = member && review.value(member);
    if (member !== undefined && value !== expected) {
      throw wrongShape(key, JSON.stringify(expected), value);
    }
  }
}

function text(body: ReviewBody, member: JsonMember): string | undefined {
  return body.isString(member) ? undefined : 'text';
}

function object(body: ReviewBody, member: JsonMember): string | undefined {
  return body.isObject(member) ? undefined : 'an object';
}

function groupVersion(last: 'kind' | 'resource'): FieldCheck {
  return (body, member) => {
    const value = body.smallValue(member);
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
  const { group, version, kind } = (member && body.smallValue(member)) as JsonObject & GroupVersionKind;
  const namespace = body.text(request, 'namespace');
  return {
    kind: { group, version, kind },
    operation: body.text(request, 'operation') ?? '',
    ...(namespace === undefined ? {} : { namespace }),
  };
}

function targetOf(body: ReviewBody, request: Members, { operation, namespace = '' }: AdmissionFacts): ReviewTarget {
  const resource = resourceIn(body, request.get('resource')) ?? NO_RESOURCE;
  const subresource = body.text(request, 'subResource') ?? '';
  return {
    operation,
    resource,
    subresource,
    requestResource: resourceIn(body, request.get('requestResource')) ?? resource,
    requestSubresource: body.text(request, 'requestSubResource') ?? subresource,
    namespace,
  };
}

const NO_RESOURCE: GroupVersionResource = { group: '', version: '', resource: '' };

function resourceIn(body: ReviewBody, member: JsonMember | undefined): GroupVersionResource | undefined {
  if (member === undefined || body.isNull(member)) {
    return undefined;
  }
  // The shape was checked when the review was parsed.
  const { group, version, resource } = body.smallValue(member) as JsonObject & GroupVersionResource;
  return { group, version, resource };
}
