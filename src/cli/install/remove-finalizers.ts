import { type Cluster, unlessGone } from '../../cluster/index.ts';
import { keyOf, type KubernetesObject, type ResourceType } from '../../resources/index.ts';

/** Removes finalizers of a controller that does not run any more. */
export async function removeFinalizers(
  cluster: Cluster,
  type: ResourceType,
  object: KubernetesObject,
  names: ReadonlySet<string>,
): Promise<void> {
  const { finalizers = [] } = object.metadata;
  const left = finalizers.filter((name) => !names.has(name));
  if (left.length < finalizers.length) {
    const body = { metadata: { finalizers: left } };
    await unlessGone(cluster.patch(type, keyOf(object), { type: 'merge', body }));
  }
}
