import { ApiError } from '../../../cluster/index.ts';
import { apiVersionOf, applyJsonPatch, groupVersionOf, isJsonObject, PatchError } from '../../../resources/index.ts';
import type { JsonObject, JsonValue, KubernetesObject, MutableObject } from '../../../resources/index.ts';
import { decodeError } from '../../builtin-kinds/decode-error.ts';
import type { ResourceDefinition } from '../../resource-definition.ts';
import { isTooDeep, MAX_DEPTH, thaw } from '../store/thaw.ts';
import type { KindId } from './attributes.ts';
import { notInto, UNEXPECTED_END } from './review-json.ts';
import { internalError } from './webhook-error.ts';
import { parseJson } from '../../../values/index.ts';

/** The operations of a patch. Throws Error with an API server's message when it is malformed. */
export function parsePatch(bytes: Buffer): readonly JsonValue[] {
  let operations: unknown;
  try {
    operations = parseJson(bytes.toString());
  } catch (error) {
    throw new Error(UNEXPECTED_END, { cause: error });
  }
  if (!Array.isArray(operations)) {
    throw new Error(notInto(operations, 'jsonpatch.Patch'));
  }
  const odd: unknown = operations.find((one) => !isJsonObject(one));
  if (odd !== undefined) {
    throw new Error(notInto(odd, 'jsonpatch.Operation'));
  }
  return operations as readonly JsonValue[];
}

/**
 * A patched copy of an object. It keeps its kind; with `definition`, its values have the right types.
 * @throws ApiError 500 with an API server's message
 */
export function applyPatch(
  object: KubernetesObject,
  operations: readonly JsonValue[],
  kind: KindId,
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
  // Unpatched parts are shared with the original.
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

function checkKind(object: MutableObject, kind: KindId): void {
  // The patch may have left values of any type.
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
    // API servers name the kind only in errors about a client's own object.
    throw internalError(error.replace(/^\S+ in version "\S*" cannot be handled as a \S+: /u, ''));
  }
}
