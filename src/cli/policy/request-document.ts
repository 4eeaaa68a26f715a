// Requests in files: an AdmissionReview, an AdmissionRequest, an object, or any document for raw policies.
import type { Route } from '../../engine/index.ts';
import { type Document, documentName, parseDocument, parseDocuments, readDocument, readText } from '../document.ts';
import { CliError, usageError } from '../errors.ts';
import { manifestObjects, objectText } from '../manifest-objects.ts';
import { plainValue } from '../plain-json.ts';
import { exactJson, type JsonObject, listed, textOf, valueAt } from '../../values/index.ts';
import { admissionReview } from './admission-request.ts';
import { givenRequestFlags, requestDetails, type RequestFlags, requestObjects } from './request-flags.ts';
import { ServedKinds } from './served-kinds.ts';

/** The objects of a file that an error lists. */
const MAX_LISTED = 10;

/** The body of a request to a policy server. */
export interface ReadRequest {
  readonly body: Uint8Array;
  /** Notes for the user. */
  readonly notes: readonly string[];
}

/**
 * The body of the request to a policy server. JSON is passed on unchanged: serializing it again could change numbers and
 * the order of keys.
 * @throws CliError when the file cannot be read or understood
 */
export async function readRequest(path: string, route: Route): Promise<Uint8Array> {
  return requestBody(await readDocument(path, 'kubernetes-exact'), route);
}

/**
 * As {@link readRequest}, also for a file with one object, around which a request is built.
 * @param kinds default: those of Kubernetes and ours
 * @throws CliError also when there are several objects, or flags that do not go together
 */
export async function readRequestOrObject(
  path: string,
  route: Route,
  flags: RequestFlags,
  kinds: ServedKinds = new ServedKinds([]),
): Promise<ReadRequest> {
  const text = await readText(path);
  const name = documentName(path);
  const given = givenRequestFlags(flags);
  const object = route === 'validate_raw' ? undefined : onlyObject(text, name);
  if (object !== undefined) {
    const old = flags.old === undefined ? undefined : await readObject(flags.old);
    const { review, notes } = requestForObject(object, old, flags, kinds);
    return { body: Buffer.from(exactJson(review)), notes };
  }
  if (given.length > 0) {
    throw usageError(`${given.join(', ')}: only used with an object, and ${name} has a request already`);
  }
  return { body: requestBody(parseDocument(text, name, 'kubernetes-exact'), route), notes: [] };
}

/**
 * The request for an object, with the defaults of API servers.
 * @param old the object before the change
 * @throws CliError when flags do not go together
 */
export function requestForObject(
  object: JsonObject,
  old: JsonObject | undefined,
  flags: RequestFlags,
  kinds: ServedKinds,
): { readonly review: JsonObject; readonly notes: readonly string[] } {
  const given = [object, ...(old === undefined ? [] : [old])].map((one) => kinds.defaulted(one));
  const [current, before] = given;
  const objects = requestObjects(current?.object ?? object, before?.object, flags.operation);
  const stated = requestDetails(flags);
  const { details, note } = stated.resource === undefined ? kinds.kindOf(object) : { details: {} };
  const review = admissionReview(objects, { ...details, ...stated });
  const ofKind = note === undefined ? [] : [`${note}; --resource and --scope state others`];
  return { review, notes: [...ofKind, ...given.flatMap((one) => one.note ?? [])] };
}

/** A review of v1beta1, as older API servers recorded it, as one of v1: the request is the same. Other values unchanged. */
export function currentReview<Value>(value: Value): Value {
  const isBeta = isReview(value) && valueAt(value, 'apiVersion') === 'admission.k8s.io/v1beta1';
  return isBeta ? { ...value, apiVersion: 'admission.k8s.io/v1' } : value;
}

function requestBody(document: Document, route: Route): Uint8Array {
  if (document.text.trim() === '') {
    throw new CliError(`${document.name} is empty: expected a request, as JSON or YAML`);
  }
  const value = route === 'validate_raw' ? document.value : currentReview(document.value);
  const text = document.isJson && value === document.value ? document.text : jsonText({ ...document, value });
  return Buffer.from(route !== 'validate_raw' && isReview(value) ? text : `{"request":${text}}`);
}

function isReview(value: unknown): value is object {
  return (
    typeof value === 'object' &&
    value !== null &&
    ('request' in value || ('kind' in value && value.kind === 'AdmissionReview'))
  );
}

/** A YAML text may have aliases, which are expanded in bounds. */
function jsonText({ name, value }: Document): string {
  return exactJson(plainValue(value ?? null, name));
}

/** The object of a file; undefined when the file has a request. */
function onlyObject(text: string, name: string): JsonObject | undefined {
  const values = parseDocuments(text, name, 'kubernetes-exact').map(({ value }) => value);
  return values.some(isObject) ? objectAmong(text, name) : undefined;
}

/** A kind is text in an object, and a mapping in an AdmissionRequest. */
function isObject(value: unknown): boolean {
  const [apiVersion, kind] = [textOf(valueAt(value, 'apiVersion')), textOf(valueAt(value, 'kind'))];
  return apiVersion !== '' && kind !== '' && kind !== 'AdmissionReview';
}

/**
 * The only object of a file.
 * @throws CliError when there is none, or there are several
 */
export async function readObject(path: string): Promise<JsonObject> {
  return objectAmong(await readText(path), documentName(path));
}

function objectAmong(text: string, name: string): JsonObject {
  const { objects, others } = manifestObjects(text, name);
  const [only] = objects;
  if (only === undefined) {
    throw new CliError(`${name} has no object: expected one, with apiVersion and kind`);
  }
  if (objects.length + others.length > 1) {
    const found = listed(
      [...objects.map(({ object }) => objectText(object)), ...others.map((line) => `no object in line ${line}`)],
      MAX_LISTED,
    );
    throw new CliError(`${name} has several documents: expected one object, got ${found}`, {
      hint: 'To evaluate each of them: portcullis test -p POLICY FILE.',
    });
  }
  return only.object;
}
