import { isDeepStrictEqual } from 'node:util';
import { type Cluster, unlessGone, type WriteOptions } from '../../cluster/index.ts';
import {
  type JsonObject,
  keyOf,
  type KubernetesObject,
  type ObjectKey,
  type ResourceType,
} from '../../resources/index.ts';

type ApplyOutcome = 'configured' | 'created' | 'unchanged';

interface Applied {
  /** The object until then; undefined when there was none. */
  readonly before?: KubernetesObject;
  readonly object: KubernetesObject;
  readonly outcome: ApplyOutcome;
}

interface ApplyOptions extends WriteOptions {
  readonly fieldManager: string;
  /** Take over fields of other managers. */
  readonly force: boolean;
  /** Default: the namespace of the object. */
  readonly key?: ObjectKey;
}

/** Applies an object by server-side apply. @throws ApiError */
export async function applyObject(
  cluster: Cluster,
  type: ResourceType,
  object: KubernetesObject,
  { force, key = keyOf(object), ...options }: ApplyOptions,
): Promise<Applied> {
  const before = await unlessGone(cluster.get(type, key));
  const after: KubernetesObject = await cluster.patch(
    type,
    key,
    { type: 'apply', body: object as JsonObject, force },
    { fieldValidation: 'Strict', ...options },
  );
  return {
    ...(before === undefined ? {} : { before }),
    object: after,
    outcome: before === undefined ? 'created' : isSame(before, after) ? 'unchanged' : 'configured',
  };
}

/** API servers may store an unchanged object again, to add defaults of a newer schema or other field managers. */
function isSame(before: KubernetesObject, after: KubernetesObject): boolean {
  const [one, other] = [before, after].map(({ metadata, ...rest }) => ({
    ...rest,
    metadata: { ...metadata, resourceVersion: undefined, managedFields: undefined },
  }));
  return isDeepStrictEqual(one, other);
}
