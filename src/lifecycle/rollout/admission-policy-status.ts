// The status of a policy: Kubewarden's fields, and our own.
import { type RefusedReport, refusedText } from '../../control/index.ts';
import {
  type Condition,
  isGroupSpec,
  POLICY_ENFORCED,
  type AdmissionPolicyStatus,
  type Readiness,
  removeCondition,
  setCondition,
  setReadiness,
  timeText,
} from '../../resources/index.ts';
import { typeCheckConditions } from '../type-checks/type-check-conditions.ts';
import { modulesKept } from './modules-kept.ts';
import { monitoredStatus } from './monitored-status.ts';
import { checkedReadiness, policyIssues, withIssues } from './policy-issues.ts';
import { refreshedStatus } from './refreshed-status.ts';
import {
  answeringRevision,
  desiredRevision,
  hasOtherParameters,
  isSwitchedTo,
  REASONS,
  type ReplicaFacts,
  revisionSummaries,
} from '../../rollout/index.ts';
import { servingStatus } from './serving-status.ts';
import type { AdmissionRevision, AdmissionRolloutView } from './admission-rollout-view.ts';
import { requestOutcome } from './request-outcome.ts';
import { rolloutPhase, type RolloutPhase } from './rollout-phase.ts';
import { isCovered } from './webhook-state.ts';

/** The policy answers requests; Unknown while no replica is connected to the controller. */
export const POLICY_ACTIVE = 'PolicyActive';
/** Every replica serves the desired revision. */
export const POLICY_UP_TO_DATE = 'UpToDate';
/** No replica refuses requests for invalid parameters. Only while a revision with parameters serves. */
export const PARAMETERS_VALID = 'ParametersValid';

/**
 * The status to write. Unchanged conditions keep their transition times. Before the replicas are known, only a failure
 * changes the status: a controller that has just started has no newer information.
 *
 * @param failure of this reconciliation; undefined after a success
 * @param now milliseconds since 1970
 */
export function admissionPolicyStatus(
  view: AdmissionRolloutView,
  failure: Readiness | undefined,
  before: AdmissionPolicyStatus | undefined,
  now: number,
): AdmissionPolicyStatus {
  const { replicas = [], generation } = view;
  if (view.replicas === undefined && before?.phase !== undefined) {
    return failure === undefined
      ? before
      : { ...before, conditions: setReadiness(before.conditions, failure, generation, now) };
  }
  const serving = answeringRevision(view);
  const desired = desiredRevision(view);
  const current = rolloutPhase(view, failure);
  const { phase, reason, message } = current;
  const isServedAndCovered = serving !== undefined && isCovered(view);
  const isUpToDate = phase === 'Active' || phase === 'RolledBack';
  const nextRetry = earliestRetry(view, desired);
  const monitored = monitoredStatus(view, before);
  const refreshed = refreshedStatus(view, before);
  const active = { ...activeCondition(view, serving, current), type: POLICY_ACTIVE, observedGeneration: generation };
  const status = isUpToDate ? 'True' : 'False';
  const upToDate = { type: POLICY_UP_TO_DATE, status, reason, message, observedGeneration: generation } as const;
  const enforced = { ...requestOutcome(view), type: POLICY_ENFORCED, observedGeneration: generation };
  const refused = refusedParameters(serving, replicas);
  const common = [active, enforced, upToDate].reduce(
    (all, condition) => setCondition(all, condition, now),
    typeCheckConditions(before?.conditions, view.typeCheck, generation, now),
  );
  const conditions =
    serving !== undefined && hasParameters(serving.snapshot)
      ? setCondition(
          common,
          { ...parametersCondition(serving, replicas, refused), observedGeneration: generation },
          now,
        )
      : removeCondition(common, PARAMETERS_VALID);
  const kept = modulesKept(view, before ?? {}, conditions, now);
  const issues = policyIssues(view, serving ?? desired, refused, before);
  const noted = withIssues(current, issues);
  return {
    policyStatus: isServedAndCovered ? 'active' : view.hasPolicyServer || replicas.length > 0 ? 'pending' : 'scheduled',
    mode: isServedAndCovered ? (serving.snapshot.mode ?? 'protect') : 'unknown',
    phase,
    reason: noted.reason,
    message: noted.message,
    observedGeneration: generation,
    desiredRevision: desired?.number ?? view.pin ?? 0,
    servingRevision: serving?.number ?? 0,
    readyReplicas: desired === undefined ? 0 : replicas.filter((replica) => isSwitchedTo(replica, desired)).length,
    totalReplicas: replicas.length,
    ...(nextRetry === undefined ? {} : { nextRetry: timeText(nextRetry) }),
    ...(monitored === undefined ? {} : { monitored }),
    ...(refreshed === undefined ? {} : { refreshed }),
    ...(serving === undefined ? {} : { serving: servingStatus(serving) }),
    ...(view.revisions.length === 0 ? {} : { revisions: revisionSummaries(view, serving) }),
    ...(issues.length === 0 ? {} : { issues }),
    ...(kept.copies === undefined ? {} : { copies: kept.copies }),
    conditions: setReadiness(kept.conditions, checkedReadiness(noted, view, before), generation, now),
  };
}

/** What a replica refuses for parameters: all replicas see the same, some a moment later. */
function refusedParameters(
  serving: AdmissionRevision | undefined,
  replicas: readonly ReplicaFacts[],
): RefusedReport | undefined {
  return replicas
    .map(({ revisions }) => (serving === undefined ? undefined : revisions.get(serving.number)?.refused))
    .find((refused) => refused !== undefined);
}

function parametersCondition(
  { number }: AdmissionRevision,
  replicas: readonly ReplicaFacts[],
  refused: RefusedReport | undefined,
): Pick<Condition, 'type' | 'status' | 'reason' | 'message'> {
  if (refused !== undefined) {
    return { type: PARAMETERS_VALID, status: 'False', reason: 'InvalidParameters', message: refusedText(refused) };
  }
  const areTried = replicas.some(({ revisions }) => revisions.get(number)?.areParametersTried === true);
  return areTried
    ? { type: PARAMETERS_VALID, status: 'True', reason: 'Valid', message: 'no invalid parameters are known' }
    : {
        type: PARAMETERS_VALID,
        status: 'Unknown',
        reason: 'NotTried',
        message: `no replica has tried the parameters with revision ${number} yet`,
      };
}

function hasParameters(snapshot: AdmissionRevision['snapshot']): boolean {
  const uses: readonly { readonly parameters?: unknown }[] = isGroupSpec(snapshot)
    ? Object.values(snapshot.policies)
    : [snapshot];
  return uses.some(({ parameters }) => parameters !== undefined);
}

/** The condition PolicyActive: the revision that answers, or why there is none. */
function activeCondition(
  view: AdmissionRolloutView,
  serving: AdmissionRevision | undefined,
  { reason, message }: RolloutPhase,
): { readonly status: 'True' | 'False' | 'Unknown'; readonly reason: string; readonly message: string } {
  if (serving === undefined || !isCovered(view)) {
    return { status: 'False', reason, message };
  }
  return view.replicas?.some(({ state }) => state === 'connected') === true
    ? { status: 'True', reason: REASONS.serving, message: `revision ${serving.number} serves` }
    : {
        status: 'Unknown',
        reason: REASONS.replicaUnreachable,
        message: `revision ${serving.number} served at the last report of the replicas`,
      };
}

/** The next retry of the desired revision, by the controller or a replica. */
function earliestRetry(view: AdmissionRolloutView, desired: AdmissionRevision | undefined): number | undefined {
  if (desired === undefined) {
    return undefined;
  }
  const { replicas = [] } = view;
  const isRetried = desired.state !== 'Failed' || hasOtherParameters(view, desired);
  const times = [
    isRetried ? desired.nextRetry : undefined,
    ...replicas.map(({ revisions }) => revisions.get(desired.number)?.nextRetry),
  ];
  return times.filter((time) => time !== undefined).toSorted((a, b) => a - b)[0];
}
