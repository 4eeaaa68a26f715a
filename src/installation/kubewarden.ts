// Recognizes objects of Kubewarden in a cluster. Changes nothing.
import { ApiError, type Cluster, listAll } from '../cluster/index.ts';
import type { KubernetesObject } from '../resources/index.ts';
import { DEPLOYMENTS } from './kinds.ts';

/** The suffix of the names of its webhooks for policies. */
export const KUBEWARDEN_WEBHOOK = '.kubewarden.admission';
/** The prefix of the names of its webhook configurations for its own kinds. */
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

/** Whether a Deployment has or should have pods. */
export function runs({ spec, status }: KubernetesObject): boolean {
  const { replicas = 1 } = (spec ?? {}) as { replicas?: number };
  const { replicas: running = 0 } = (status ?? {}) as { replicas?: number };
  return replicas > 0 || running > 0;
}

/** Running controllers of Kubewarden; none when listing Deployments is forbidden. @throws ClusterError */
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
