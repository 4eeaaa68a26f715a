// What clients send, as an object of its own that may be changed.
import { ApiError } from '../../cluster/index.ts';
import { groupVersionOf, isJsonObject, withObjectMeta } from '../../resources/index.ts';
import type { KubernetesObject, MutableObject } from '../../resources/index.ts';
import { decodeError } from '../builtin-kinds/decode-error.ts';
import { isTooDeep, MAX_DEPTH, thaw } from './store/deep-freeze.ts';

/** What is known of objects whose kind is not: what their metadata are. */
const ANY_OBJECT = withObjectMeta({ type: 'object' });

/** A copy, which has metadata of the right types. Throws ApiError when it is none, or nests too deep. */
export function received(given: unknown): MutableObject {
  if (!isJsonObject(given)) {
    throw ApiError.badRequest('what came is no object: expected apiVersion, kind and metadata');
  }
  if (isTooDeep(given)) {
    throw tooDeep();
  }
  const object = thaw(given) as unknown as MutableObject;
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

/** Why the metadata of an object cannot be read: a value has another JSON type than its field. */
export function metadataProblem(object: MutableObject, kind: string, version: string): string | undefined {
  return decodeError({ kind, version, schema: () => ANY_OBJECT }, object);
}

/** A copy of an object of that kind; it need not say which it is. Throws ApiError when it says that it is another. */
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
