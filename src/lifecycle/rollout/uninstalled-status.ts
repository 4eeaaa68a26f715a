// The last statuses of policies and PolicyServers, after the product was uninstalled.
import {
  type AdmissionPolicyObject,
  findCondition,
  type PolicyServerObject,
  type AdmissionPolicyStatus,
  READY,
  setCondition,
  setReadiness,
  setUninstalled,
} from '../../resources/index.ts';
import { POLICY_ACTIVE, POLICY_UP_TO_DATE } from './admission-policy-status.ts';
import { REASONS } from '../../rollout/index.ts';

const POLICY_MESSAGE = 'Portcullis was uninstalled: requests are admitted without the policy';
const SERVER_MESSAGE = 'Portcullis was uninstalled: there are no policy servers';

/** The status of a policy that nothing enforces or audits any more; undefined where Portcullis never wrote one. */
export function uninstalledPolicyStatus(policy: AdmissionPolicyObject, now: number): AdmissionPolicyStatus | undefined {
  const { status, metadata } = policy;
  if (status === undefined) {
    return undefined;
  }
  // Of policies of other controllers, the auditor alone wrote something.
  const { audit, ...unaudited } = status;
  if (status.phase === undefined) {
    return audit === undefined ? undefined : unaudited;
  }
  const { serving: _serving, nextRetry: _retry, monitored: _monitored, ...before } = unaudited;
  const { observedGeneration = metadata.generation ?? 0 } = status;
  const about = { status: 'False', reason: REASONS.uninstalled, message: POLICY_MESSAGE, observedGeneration } as const;
  const conditions = [POLICY_ACTIVE, POLICY_UP_TO_DATE].reduce(
    (all, type) => setCondition(all, { ...about, type }, now),
    status.conditions ?? [],
  );
  return {
    ...before,
    policyStatus: 'unscheduled',
    mode: 'unknown',
    phase: 'Pending',
    reason: REASONS.uninstalled,
    message: POLICY_MESSAGE,
    servingRevision: 0,
    readyReplicas: 0,
    totalReplicas: 0,
    conditions: setUninstalled(conditions, POLICY_MESSAGE, observedGeneration, now),
  };
}

/** The status of a PolicyServer without processes; undefined where the controller never wrote one. */
export function uninstalledServerStatus(
  server: PolicyServerObject,
  now: number,
): PolicyServerObject['status'] | undefined {
  const { status } = server;
  if (status === undefined || findCondition(status.conditions, READY) === undefined) {
    return undefined;
  }
  const stalled = { state: 'stalled', reason: REASONS.uninstalled, message: SERVER_MESSAGE } as const;
  const conditions = setReadiness(status.conditions, stalled, status.observedGeneration ?? 0, now);
  return { ...status, readyReplicas: 0, totalReplicas: 0, conditions: [...conditions] };
}
