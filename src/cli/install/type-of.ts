// The kinds of objects that are installed.
import type { Cluster } from '../../cluster/index.ts';
import { type KubernetesObject, productKind, type ResourceType } from '../../resources/index.ts';
import { CliError } from '../errors.ts';

/** The type of an object, also of our own kinds before they are installed. @throws CliError when the cluster does not serve it */
export async function typeOf(cluster: Cluster, { apiVersion, kind }: KubernetesObject): Promise<ResourceType> {
  const found = productKind(apiVersion, kind) ?? (await cluster.discovery.find(apiVersion, kind));
  if (found === undefined) {
    throw new CliError(`the cluster has no kind ${kind} in ${apiVersion}, which the values need`, {
      hint: 'Install its operator first (cert-manager, the Prometheus operator), or leave that value at its default.',
    });
  }
  return found;
}
