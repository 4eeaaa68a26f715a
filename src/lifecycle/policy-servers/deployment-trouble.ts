// Why a Deployment that is as it is to be has not the pods that it is to have, as its status says.
import type { Deployment } from './ownership.ts';
import { OBJECT_REASONS } from './policy-server-conditions.ts';

export interface DeploymentTrouble {
  readonly reason: typeof OBJECT_REASONS.podsNotCreated | typeof OBJECT_REASONS.podsNotReady;
  readonly message: string;
}

export function deploymentTrouble({ status }: Deployment): DeploymentTrouble | undefined {
  const { conditions = [] } = status ?? {};
  const failure = conditions.find(({ type, status: is }) => type === 'ReplicaFailure' && is === 'True');
  if (failure !== undefined) {
    return {
      reason: OBJECT_REASONS.podsNotCreated,
      message: `the cluster makes no pods: ${failure.message ?? failure.reason ?? ''}`,
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

/**
 * What a rollout of a Deployment still waits for: new pods, or the end of old ones. Undefined when it is complete, and where no
 * controller of Deployments writes a status.
 */
export function rolloutProgress({ metadata, spec, status }: Deployment): string | undefined {
  if (status?.observedGeneration === undefined) {
    return undefined;
  }
  const { observedGeneration, replicas = 0, updatedReplicas = 0 } = status;
  const wanted = spec?.replicas ?? 1;
  const isSeen = observedGeneration >= (metadata.generation ?? 0);
  return isSeen && updatedReplicas >= wanted && replicas <= updatedReplicas
    ? undefined
    : `${isSeen ? updatedReplicas : 0} of ${wanted} pods are of the newest version`;
}
