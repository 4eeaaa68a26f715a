import { type Cluster, unlessGone } from '../../cluster/index.ts';
import { keyOf, type KubernetesObject, type ResourceType } from '../../resources/index.ts';
import { KUBEWARDEN_FINALIZERS } from './kubewarden.ts';

/** Removes the finalizers of Kubewarden's controller, where that does not run any more. */
export async function removeKubewardenFinalizers(
  cluster: Cluster,
  type: ResourceType,
  object: KubernetesObject,
): Promise<void> {
  const { finalizers = [] } = object.metadata;
  const left = finalizers.filter((name) => !KUBEWARDEN_FINALIZERS.has(name));
  if (left.length < finalizers.length) {
    const body = { metadata: { finalizers: left } };
    await unlessGone(cluster.patch(type, keyOf(object), { type: 'merge', body }));
  }
}
