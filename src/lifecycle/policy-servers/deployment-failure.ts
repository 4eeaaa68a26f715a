// Failures and progress in the status of a Deployment.
import type { Deployment } from './ownership.ts';
import { OBJECT_REASONS } from './policy-server-conditions.ts';

export interface DeploymentFailure {
  readonly reason: typeof OBJECT_REASONS.podsNotCreated | typeof OBJECT_REASONS.podsNotReady;
  readonly message: string;
}

export function deploymentFailure({ status }: Deployment): DeploymentFailure | undefined {
  const { conditions = [] } = status ?? {};
  const failure = conditions.find(({ type, status: is }) => type === 'ReplicaFailure' && is === 'True');
  if (failure !== undefined) {
    return {
      reason: OBJECT_REASONS.podsNotCreated,
      message: `no pods can be created: ${failure.message ?? failure.reason ?? ''}`,
    };
  }
  const stuck = conditions.find(({ type, status: is }) => type === 'Progressing' && is === 'False');
  return stuck === undefined
    ? undefined
    : {
        reason: OBJECT_REASONS.podsNotReady,
        message: `new pods do not become ready: ${stuck.message ?? stuck.reason ?? ''}`,
      };
}

/** Pods whose probes succeed. Undefined when no controller writes the status of Deployments. */
export function readyPods({ status }: Deployment): number | undefined {
  return status?.observedGeneration === undefined ? undefined : (status.readyReplicas ?? 0);
}

/**
 * What a rollout of a Deployment waits for: new pods, the end of old ones, or pods that become ready. Undefined when it is
 * complete, or when no
 * controller writes the status of Deployments.
 */
export function rolloutProgress({ metadata, spec, status }: Deployment): string | undefined {
  if (status?.observedGeneration === undefined) {
    return undefined;
  }
  const { observedGeneration, replicas = 0, updatedReplicas = 0, readyReplicas = 0 } = status;
  const wanted = spec?.replicas ?? 1;
  const isSeen = observedGeneration >= (metadata.generation ?? 0);
  if (!isSeen || updatedReplicas < wanted || replicas > updatedReplicas) {
    return `${isSeen ? updatedReplicas : 0} of ${wanted} pods are of the newest version`;
  }
  return readyReplicas < wanted ? `${readyReplicas} of ${wanted} pods are ready` : undefined;
}
