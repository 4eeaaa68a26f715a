// Progress of installed objects.
import { type Condition, findCondition, type KubernetesObject, READY } from '../resources/index.ts';

/** Whether an object is ready, and its state as text. */
export interface Progressing {
  readonly done: boolean;
  readonly text: string;
}

interface DeploymentStatus {
  readonly observedGeneration?: number;
  readonly replicas?: number;
  readonly updatedReplicas?: number;
  readonly availableReplicas?: number;
}

/** Done when all pods are of the newest template and available. */
export function deploymentProgress(deployment: KubernetesObject | undefined): Progressing {
  if (deployment === undefined) {
    return { done: false, text: 'it does not exist' };
  }
  const { replicas: wanted = 1 } = (deployment['spec'] ?? {}) as { replicas?: number };
  const status = (deployment['status'] ?? {}) as DeploymentStatus;
  const { observedGeneration = 0, replicas = 0, updatedReplicas = 0, availableReplicas = 0 } = status;
  const isSeen = observedGeneration >= (deployment.metadata.generation ?? 0);
  const done = isSeen && updatedReplicas >= wanted && availableReplicas >= wanted && replicas <= wanted;
  return { done, text: `${availableReplicas} of ${wanted} pods available, ${updatedReplicas} up to date` };
}

/** Done when the condition says that all replicas answer. */
export function policyServerProgress(server: KubernetesObject | undefined): Progressing {
  if (server === undefined) {
    return { done: false, text: 'it does not exist' };
  }
  const { conditions = [] } = (server['status'] ?? {}) as { conditions?: readonly Condition[] };
  const ready = findCondition(conditions, READY);
  const isSeen = (ready?.observedGeneration ?? 0) >= (server.metadata.generation ?? 0);
  return {
    done: isSeen && ready?.status === 'True',
    text: ready === undefined ? 'no controller has looked at it' : `${ready.reason}: ${ready.message}`,
  };
}
