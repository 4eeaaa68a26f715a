import { ApiError } from '../../../cluster/index.ts';
import type { Patch } from '../../../cluster/index.ts';
import { applyJsonPatch, applyMergePatch, isJsonObject, PatchError } from '../../../resources/index.ts';
import type { JsonObject, KubernetesObject, MutableObject, ObjectKey, Schema } from '../../../resources/index.ts';
import { MergeError } from '../../../resources/structured-merge/index.ts';
import { applyStrategicMergePatch } from '../../patches/strategic-merge-patch.ts';
import { applyServerSide } from '../../server-side-apply/server-side-apply.ts';
import type { RegisteredResource } from '../kinds/resource-registry.ts';
import { scaleOf, withScale } from './scale.ts';
import { thaw } from '../store/thaw.ts';

/** The result of a patch other than apply. */
export function patchedObject({
  served,
  live,
  patch,
  subresource,
}: {
  readonly served: RegisteredResource;
  readonly live: KubernetesObject | undefined;
  readonly patch: Exclude<Patch, { type: 'apply' }>;
  readonly subresource: string | undefined;
}): MutableObject {
  if (live === undefined) {
    throw ApiError.internal('there is no object to patch');
  }
  const { definition } = served;
  if (subresource === 'scale' && definition.scale !== undefined) {
    const scale = patched(served, scaleOf(live, definition.scale), patch);
    return withScale(live, definition.scale, scale);
  }
  return patched(served, live, patch);
}

function patched(
  { definition }: RegisteredResource,
  object: KubernetesObject,
  patch: Exclude<Patch, { type: 'apply' }>,
): MutableObject {
  const before = object as JsonObject;
  try {
    switch (patch.type) {
      case 'json':
        return objectOf(applyJsonPatch(before, patch.body));
      case 'merge':
        return objectOf(applyMergePatch(before, patch.body));
      case 'strategic':
        if (definition.origin === 'custom') {
          throw unsupported();
        }
        return objectOf(applyStrategicMergePatch(before, patch.body, definition.schema()));
      default:
        throw unsupported();
    }
  } catch (error) {
    if (error instanceof PatchError) {
      throw patchError(error);
    }
    throw error;
  }
}

function unsupported(): ApiError {
  return new ApiError(
    415,
    'UnsupportedMediaType',
    'the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml',
    {},
  );
}

function patchError(error: PatchError): ApiError {
  switch (error.status) {
    case 400:
      return new ApiError(400, 'BadRequest', error.message, undefined, error);
    case 413:
      return new ApiError(413, 'RequestEntityTooLarge', `Request entity too large: ${error.message}`, undefined, error);
    case 422:
      return new ApiError(422, 'Invalid', `the server rejected our request due to an error in our request`, {}, error);
    default:
      return new ApiError(500, 'Unknown', error.message, undefined, error);
  }
}

/** Checks that the patched value is still an object with metadata. */
function objectOf(value: unknown): MutableObject {
  if (!isJsonObject(value) || !isJsonObject(value['metadata'])) {
    throw ApiError.badRequest('the patched value is not an object: expected an object with metadata');
  }
  return thaw(value) as MutableObject;
}

/** The result of server-side apply on a live or a new object. */
export function appliedObject({
  served,
  live,
  key,
  body,
  force,
  manager,
  subresource,
  now,
  schemaOf,
}: {
  readonly served: RegisteredResource;
  readonly live: KubernetesObject | undefined;
  readonly key: ObjectKey;
  readonly body: JsonObject;
  readonly force: boolean;
  readonly manager: string;
  readonly subresource: string | undefined;
  readonly now: number;
  readonly schemaOf: (apiVersion: string) => Schema | undefined;
}): MutableObject {
  const { definition } = served;
  if (manager === '') {
    throw ApiError.invalid({ group: 'meta.k8s.io', kind: 'PatchOptions' }, '', [
      { reason: 'FieldValueRequired', field: 'fieldManager', message: 'Required value: is required for apply patch' },
    ]);
  }
  const metadata = isJsonObject(body['metadata']) ? body['metadata'] : {};
  const named = { ...body, metadata: { name: key.name, ...metadata } };
  try {
    const { object, conflicts } = applyServerSide({
      live,
      applied: named as KubernetesObject,
      definition,
      subresource: subresource ?? '',
      manager,
      force,
      now,
      schemaOf,
    });
    if (conflicts !== undefined) {
      throw new ApiError(409, 'Conflict', conflicts.message, { causes: conflicts.causes });
    }
    return thaw(object) as MutableObject;
  } catch (error) {
    if (error instanceof MergeError) {
      throw new ApiError(
        error.status,
        error.status === 400 ? 'BadRequest' : 'Unknown',
        error.message,
        undefined,
        error,
      );
    }
    throw error;
  }
}
