import { type Cluster, unlessGone, type WriteOptions } from '../../cluster/index.ts';
import {
  type JsonObject,
  keyOf,
  type KubernetesObject,
  type ObjectKey,
  type ResourceType,
} from '../../resources/index.ts';

type ApplyOutcome = 'configured' | 'created' | 'unchanged';

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
): Promise<{ readonly object: KubernetesObject; readonly outcome: ApplyOutcome }> {
  const before = await unlessGone(cluster.get(type, key));
  const after: KubernetesObject = await cluster.patch(
    type,
    key,
    { type: 'apply', body: object as JsonObject, force },
    { fieldValidation: 'Strict', ...options },
  );
  const isSame = before?.metadata.resourceVersion === after.metadata.resourceVersion;
  return { object: after, outcome: before === undefined ? 'created' : isSame ? 'unchanged' : 'configured' };
}
