// What there is of Kubewarden in a cluster. Nothing here changes it.
import { ApiError, type Cluster, listAll } from '../../cluster/index.ts';
import type { KubernetesObject } from '../../resources/index.ts';
import { DEPLOYMENTS } from './kinds.ts';

/** What its controller puts on policies and PolicyServers, and takes away when they are deleted. */
const KUBEWARDEN_FINALIZER = 'kubewarden.io/finalizer';
/** The finalizers of all of its versions. */
export const KUBEWARDEN_FINALIZERS: ReadonlySet<string> = new Set([KUBEWARDEN_FINALIZER, 'kubewarden']);
/** How names of its webhooks for policies end. */
export const KUBEWARDEN_WEBHOOK = '.kubewarden.admission';
/** How names of its own webhooks begin. */
export const KUBEWARDEN_CONFIGURATION = 'kubewarden-controller-';

const PART_OF = 'app.kubernetes.io/part-of';
const NAME = 'app.kubernetes.io/name';
const COMPONENT = 'app.kubernetes.io/component';
const NAMES: ReadonlySet<string> = new Set(['kubewarden-controller', 'admission-controller']);

/** Whether a Deployment is Kubewarden's controller, by the labels of its charts. */
export function isKubewardenController({ metadata }: KubernetesObject): boolean {
  const { labels = {}, name = '' } = metadata;
  if (labels[PART_OF] === 'portcullis') {
    return false;
  }
  const isNamed = NAMES.has(labels[NAME] ?? '') || NAMES.has(name);
  return labels[PART_OF] === 'kubewarden'
    ? isNamed || labels[COMPONENT] === 'controller'
    : name === 'kubewarden-controller' || labels[NAME] === 'kubewarden-controller';
}

/** Whether a controller that is declared has pods, or is to have some. */
export function runs({ spec, status }: KubernetesObject): boolean {
  const { replicas = 1 } = (spec ?? {}) as { replicas?: number };
  const { replicas: running = 0 } = (status ?? {}) as { replicas?: number };
  return replicas > 0 || running > 0;
}

/** Kubewarden's controllers that run. None where it cannot be seen. @throws ClusterError */
export async function kubewardenControllers(cluster: Cluster): Promise<readonly KubernetesObject[]> {
  try {
    const { items } = await listAll(cluster, DEPLOYMENTS, {});
    return items.filter((deployment) => isKubewardenController(deployment) && runs(deployment));
  } catch (error) {
    if (error instanceof ApiError && error.code === 403) {
      return [];
    }
    throw error;
  }
}
