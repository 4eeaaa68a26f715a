// The view of a controller, from its caches.
import type { ReplicaAnswers } from '../../../control/index.ts';
import type { AdmissionPolicySpec } from '../../../resources/index.ts';
import type { ReplicaFacts } from '../../../rollout/index.ts';
import type { AdmissionRevision, AdmissionRolloutView } from '../admission-rollout-view.ts';
import { ADMISSION_RULES } from '../inherited-validation.ts';
import { ABSENT, COVERED } from '../webhook-state.ts';
import {
  type Belief,
  DEADLINE_MS,
  failurePolicyOf,
  NOW,
  type Replica,
  type Revision,
  type Rules,
  type Spec,
} from './rollout-world.ts';

/** The input of a controller's plan. */
export function viewOf(belief: Belief, { settings, hasOrders }: Rules): AdmissionRolloutView {
  return {
    now: NOW,
    generation: 1,
    spec: specOf(belief.policy.spec),
    ownWebhook: false,
    refresh: refreshOf(belief.policy.refresh),
    pin: belief.policy.pin === 0 ? undefined : belief.policy.pin,
    settings: belief.policy.isDisarmed ? { ...settings, disarmed: 'INC-1' } : settings,
    revisions: belief.revisions.map(revisionFacts),
    replicas: belief.replicas?.map((replica) => replicaFacts(replica, hasOrders, belief.revisions.at(-1)?.n ?? 0)),
    monitored: [],
    isTypeCheckPending: false,
    invalidAnnotations: [],
    hasPolicyServer: true,
    webhook:
      belief.covered === '' ? ABSENT : COVERED[belief.covered === belief.covered.toUpperCase() ? 'Ignore' : 'Fail'],
    phase: belief.policy.status?.phase,
    rules: ADMISSION_RULES,
  };
}

function refreshOf(refresh: number): string | undefined {
  return refresh === 0 ? undefined : String(refresh);
}

function specOf(spec: Spec): AdmissionPolicySpec {
  const failurePolicy = failurePolicyOf(spec) === 'admitted' ? 'Ignore' : 'Fail';
  return { module: spec.toLowerCase(), policyServer: 'default', failurePolicy } as AdmissionPolicySpec;
}

function revisionFacts({
  n,
  spec,
  state,
  reason,
  order,
  isPinned,
  tag,
  refresh,
  refreshed,
  attempts,
  retries,
  late,
  isEnforced,
}: Revision): AdmissionRevision {
  return {
    number: n,
    policy: 'p',
    generation: n,
    rollbackOf: undefined,
    state,
    reason,
    message: reason,
    modules: isPinned ? [{ name: 'p', module: spec.toLowerCase(), digest: `builtin:p@${tag}` }] : [],
    warnings: [],
    attempts,
    triedParameters: undefined,
    nextRetry: retries ? NOW + (late ? -1 : 1) : undefined,
    stateSince: late ? NOW - DEADLINE_MS : NOW,
    order,
    servingSince: order > 0 ? NOW : undefined,
    snapshot: specOf(spec),
    ownWebhook: false,
    refresh: refreshOf(refresh),
    refreshed: refreshOf(refreshed),
    isEnforced,
  };
}

function replicaFacts(
  { name, state, sees, loaded, failed, serves, order }: Replica,
  hasOrders: boolean,
  newest: number,
): ReplicaFacts {
  interface Report {
    readonly state: 'Loading' | 'Staged' | 'Serving' | 'Failed';
    readonly order?: number;
  }
  const revisions = new Map<number, Report>();
  if (sees.failed && serves === 0 && state === 'connected') {
    revisions.set(sees.answering || newest, { state: 'Loading' });
  }
  for (const n of state === 'connected' ? [...sees.staged, sees.serving, serves] : []) {
    if (n !== 0) {
      const beside = loaded.includes(n) ? 'Staged' : failed.includes(n) ? 'Failed' : 'Loading';
      revisions.set(n, n === serves ? { state: 'Serving', ...(hasOrders ? { order } : {}) } : { state: beside });
    }
  }
  const answering = serves || sees.answering || newest;
  const byFailurePolicy = { rejected: 'Fail', admitted: 'Ignore', nothing: 'Nothing' } as const;
  const answersOf = (n: number): ReplicaAnswers =>
    n !== answering ? 'Nothing' : serves === 0 ? byFailurePolicy[sees.otherwise] : 'Verdict';
  const entries = [...revisions].map(
    ([n, report]) =>
      [
        n,
        {
          ...report,
          answers: answersOf(n),
          reason: report.state === 'Failed' ? 'FetchFailed' : '',
          message: '',
          nextRetry: undefined,
        },
      ] as const,
  );
  return { name, state, revisions: new Map(entries) };
}
