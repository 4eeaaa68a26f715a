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
  unknownAudit,
} from '../../resources/index.ts';
import { POLICY_ACTIVE, POLICY_UP_TO_DATE } from './admission-policy-status.ts';
import { REASONS } from '../../rollout/index.ts';

const POLICY_MESSAGE = 'Portcullis was uninstalled: requests are admitted without the policy';
/** Of what the status says about existing objects. */
const UNAUDITED = { reason: REASONS.uninstalled, message: 'Portcullis was uninstalled' } as const;
const SERVER_MESSAGE = 'Portcullis was uninstalled: there are no policy servers';

/** The status of a policy that nothing enforces or audits any more; undefined where Portcullis never wrote one. */
export function uninstalledPolicyStatus(policy: AdmissionPolicyObject, now: number): AdmissionPolicyStatus | undefined {
  const { status, metadata } = policy;
  if (status === undefined) {
    return undefined;
  }
  const { audit } = status;
  const existing = audit && {
    audit: unknownAudit(audit, metadata.generation ?? 0, { since: now, because: UNAUDITED }),
  };
  // Of policies of other controllers, the auditor alone wrote something.
  if (status.phase === undefined) {
    return existing && { ...status, ...existing };
  }
  const { serving: _serving, nextRetry: _retry, monitored: _monitored, ...before } = status;
  const { observedGeneration = metadata.generation ?? 0 } = status;
  const about = { status: 'False', reason: REASONS.uninstalled, message: POLICY_MESSAGE, observedGeneration } as const;
  const conditions = [POLICY_ACTIVE, POLICY_UP_TO_DATE].reduce(
    (all, type) => setCondition(all, { ...about, type }, now),
    status.conditions ?? [],
  );
  return {
    ...before,
    ...existing,
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
