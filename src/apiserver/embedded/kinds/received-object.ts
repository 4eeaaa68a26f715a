// Copies and checks objects that clients send.
import { ApiError } from '../../../cluster/index.ts';
import { groupVersionOf, isJsonObject, withObjectMeta } from '../../../resources/index.ts';
import type { KubernetesObject, MutableObject } from '../../../resources/index.ts';
import { decodeError } from '../../../resources/decoding/index.ts';
import { isTooDeep, MAX_DEPTH, thaw } from '../store/thaw.ts';

/** The schema that all objects conform to: only metadata is declared. */
const ANY_OBJECT = withObjectMeta({ type: 'object' });

/** Copies an object. Throws ApiError when the value is not an object, is nested too deeply, or has malformed metadata. */
export function received(given: unknown): MutableObject {
  if (!isJsonObject(given)) {
    throw ApiError.badRequest('the request contains no object: expected apiVersion, kind and metadata');
  }
  if (isTooDeep(given)) {
    throw tooDeep();
  }
  const object = thaw(given) as MutableObject;
  if (!isJsonObject(object.metadata)) {
    object.metadata = {};
  }
  const { apiVersion, kind } = object;
  const problem = metadataProblem(
    object,
    typeof kind === 'string' ? kind : '',
    groupVersionOf(typeof apiVersion === 'string' ? apiVersion : '').version,
  );
  if (problem !== undefined) {
    throw ApiError.badRequest(problem);
  }
  return object;
}

/** The error for a value of the wrong JSON type in an object's metadata. */
export function metadataProblem(object: MutableObject, kind: string, version: string): string | undefined {
  return decodeError({ kind, version, schema: () => ANY_OBJECT }, object);
}

/** Copies an object and sets `apiVersion` and `kind`. Throws ApiError when the object has another kind. */
export function receivedObject(given: KubernetesObject, apiVersion: string, kind: string): MutableObject {
  const object = received(given);
  object.apiVersion ??= apiVersion;
  object.kind ??= kind;
  if (object.apiVersion !== apiVersion) {
    throw ApiError.badRequest(
      `the API version in the data (${object.apiVersion}) does not match the expected API version (${apiVersion})`,
    );
  }
  if (object.kind !== kind) {
    throw ApiError.badRequest(
      `${object.kind} in version "${groupVersionOf(apiVersion).version}" cannot be handled as a ${kind}: converting (${object.kind}) to (${kind}): unknown conversion`,
    );
  }
  return object;
}

export function tooDeep(): ApiError {
  return ApiError.badRequest(`the object is nested deeper than ${MAX_DEPTH} levels: make it flatter`);
}
