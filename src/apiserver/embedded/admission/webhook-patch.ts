import { ApiError } from '../../../cluster/index.ts';
import { apiVersionOf, applyJsonPatch, groupVersionOf, isJsonObject, PatchError } from '../../../resources/index.ts';
import type {
  GroupVersionKind,
  JsonObject,
  JsonValue,
  KubernetesObject,
  MutableObject,
} from '../../../resources/index.ts';
import { decodeError } from '../../../resources/decoding/index.ts';
import type { ResourceDefinition } from '../../resource-definition.ts';
import { isTooDeep, MAX_DEPTH, thaw } from '../store/thaw.ts';
import { unmarshalMessage, UNEXPECTED_END } from './review-json.ts';
import { internalError } from './webhook-error.ts';
import { parseJson } from '../../../values/index.ts';

/** Parses a JSON patch. Throws Error with an API server's message when it is malformed. */
export function parsePatch(bytes: Buffer): readonly JsonValue[] {
  let operations: unknown;
  try {
    operations = parseJson(bytes.toString());
  } catch (error) {
    throw new Error(UNEXPECTED_END, { cause: error });
  }
  if (!Array.isArray(operations)) {
    throw new Error(unmarshalMessage(operations, 'jsonpatch.Patch'));
  }
  const wrong: unknown = operations.find((one) => !isJsonObject(one));
  if (wrong !== undefined) {
    throw new Error(unmarshalMessage(wrong, 'jsonpatch.Operation'));
  }
  return operations as readonly JsonValue[];
}

/**
 * A patched copy of an object. The patch must not change the kind. For builtin kinds, the types of fields are checked.
 * @throws ApiError 500 with an API server's message
 */
export function applyPatch(
  object: KubernetesObject,
  operations: readonly JsonValue[],
  kind: GroupVersionKind,
  definition: ResourceDefinition | undefined,
): MutableObject {
  let patched: JsonValue;
  try {
    patched = applyJsonPatch(object as JsonObject, operations);
  } catch (error) {
    throw error instanceof PatchError ? internalError(error.message, error) : error;
  }
  if (!isJsonObject(patched) || isTooDeep(patched)) {
    throw internalError(`expected an object of at most ${MAX_DEPTH} levels after a webhook's patch`);
  }
  // The patched value shares unchanged parts with the original.
  const copy = thaw(patched) as MutableObject;
  if (!isJsonObject(copy.metadata)) {
    copy.metadata = {};
  }
  checkKind(copy, kind);
  if (definition?.origin === 'builtin') {
    checkTypes(copy, definition);
  }
  return copy;
}

function checkKind(object: MutableObject, kind: GroupVersionKind): void {
  // After a patch, these may have any type.
  const { apiVersion, kind: name }: Readonly<Record<string, unknown>> = object;
  if (apiVersion !== apiVersionOf(kind) || name !== kind.kind) {
    const { version } = groupVersionOf(typeof apiVersion === 'string' ? apiVersion : '');
    const group = kind.group === '' ? 'core' : kind.group.split('.')[0];
    const message = `converting (${version}.${typeof name === 'string' ? name : ''}) to (${group}.${kind.kind}): unknown conversion`;
    throw new ApiError(500, 'Unknown', message);
  }
}

function checkTypes(object: MutableObject, definition: ResourceDefinition): void {
  const error = decodeError(definition, object);
  if (error !== undefined) {
    // In this case the message of API servers does not name the kind.
    throw internalError(error.replace(/^\S+ in version "\S*" cannot be handled as a \S+: /u, ''));
  }
}
