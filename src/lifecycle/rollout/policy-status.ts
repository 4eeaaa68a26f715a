// What a policy's status says, from what is known of it. Upstream's fields with ours beside them.
import { type PolicyStatus, type Readiness, setCondition, setReadiness, timeText } from '../../resources/index.ts';
import { REASONS } from './reasons.ts';
import { answeringRevision, desiredRevision, isServedBy } from './revision-choice.ts';
import { judge, type Verdict } from './rollout-phase.ts';
import type { ReplicaFacts, RevisionFacts, RolloutView } from './rollout-view.ts';

/** Requests are answered by the policy; Unknown while no replica answers the controller. */
export const POLICY_ACTIVE = 'PolicyActive';
/** The revision that is to serve does, on every replica. */
export const POLICY_UP_TO_DATE = 'UpToDate';

/**
 * The status to be written. Conditions keep their times where nothing changed. While nothing is known of replicas the status stays
 * what it was, but for a failure: a controller that has just started knows nothing better.
 *
 * @param failure of the reconciliation that this status ends; undefined: it went well
 * @param now milliseconds since 1970
 */
export function policyStatus(
  view: RolloutView,
  failure: Readiness | undefined,
  before: PolicyStatus | undefined,
  now: number,
): PolicyStatus {
  const { replicas = [], generation } = view;
  if (view.replicas === undefined && before?.phase !== undefined) {
    return failure === undefined
      ? before
      : { ...before, conditions: setReadiness(before.conditions, failure, generation, now) };
  }
  const serving = answeringRevision(view);
  const desired = desiredRevision(view);
  const verdict = judge(view, failure);
  const { phase, reason, message } = verdict;
  const isEnforced = serving !== undefined && view.isAsked;
  const isUpToDate = phase === 'Active' || phase === 'RolledBack';
  const nextRetry = earliestRetry(desired, replicas);
  const active = { ...aboutActive(view, serving, verdict), type: POLICY_ACTIVE, observedGeneration: generation };
  const status = isUpToDate ? 'True' : 'False';
  const upToDate = { type: POLICY_UP_TO_DATE, status, reason, message, observedGeneration: generation } as const;
  const conditions = setCondition(setCondition(before?.conditions, active, now), upToDate, now);
  return {
    policyStatus: isEnforced ? 'active' : view.hasPolicyServer || replicas.length > 0 ? 'pending' : 'scheduled',
    mode: isEnforced ? (serving.snapshot.mode ?? 'protect') : 'unknown',
    phase,
    reason,
    message,
    observedGeneration: generation,
    desiredRevision: desired?.number ?? view.pin ?? 0,
    servingRevision: serving?.number ?? 0,
    readyReplicas: desired === undefined ? 0 : replicas.filter((replica) => isServedBy(replica, desired)).length,
    totalReplicas: replicas.length,
    ...(nextRetry === undefined ? {} : { nextRetry: timeText(nextRetry) }),
    conditions: setReadiness(conditions, verdict, generation, now),
  };
}

/** Whether the policy is enforced: by what, or why not. */
function aboutActive(
  view: RolloutView,
  serving: RevisionFacts | undefined,
  { reason, message }: Verdict,
): { readonly status: 'True' | 'False' | 'Unknown'; readonly reason: string; readonly message: string } {
  if (serving === undefined || !view.isAsked) {
    return { status: 'False', reason, message };
  }
  return view.replicas?.some(({ state }) => state === 'connected') === true
    ? { status: 'True', reason: REASONS.serving, message: `revision ${serving.number} serves` }
    : {
        status: 'Unknown',
        reason: REASONS.replicaUnreachable,
        message: `revision ${serving.number} served when replicas were last heard`,
      };
}

/** When what is wrong with the desired revision is tried again: by the controller, or by a replica. */
function earliestRetry(desired: RevisionFacts | undefined, replicas: readonly ReplicaFacts[]): number | undefined {
  if (desired === undefined) {
    return undefined;
  }
  const times = [desired.nextRetry, ...replicas.map(({ revisions }) => revisions.get(desired.number)?.nextRetry)];
  return times.filter((time) => time !== undefined).toSorted((a, b) => a - b)[0];
}
