// What a policy's status says, from what is known of it. Upstream's fields (contract 2.3) with ours beside them.
import { type PolicyStatus, setCondition } from '../../resources/index.ts';
import { REASONS } from './reasons.ts';
import { desiredRevision, hasFailed, servingRevision } from './revision-choice.ts';
import type { ReplicaFacts, RevisionFacts, RolloutView } from './rollout-view.ts';

/** Requests are answered by the policy. */
export const POLICY_ACTIVE = 'PolicyActive';
/** The version that serves is the one that is declared, on every replica. */
export const POLICY_UP_TO_DATE = 'UpToDate';

/** Replicas that a message names; the number of the others is told. */
const MAX_NAMED_REPLICAS = 3;
/** Longest part of a message that is somebody else's words. */
const MAX_DETAIL_LENGTH = 2_000;

/** The webhook configuration could not be written. */
export interface Refusal {
  readonly reason: string;
  readonly message: string;
}

type Verdict = Pick<Required<PolicyStatus>, 'phase' | 'reason' | 'message'>;

/**
 * The status to be written. While nothing is known of replicas it is what it was: a controller that has just begun tells
 * nothing new. Conditions keep their times where nothing changed.
 *
 * @param now milliseconds since 1970
 */
export function policyStatus(
  view: RolloutView,
  { refusal }: { readonly refusal?: Refusal },
  before: PolicyStatus | undefined,
  now: number,
): PolicyStatus {
  if (view.replicas === undefined && before !== undefined) {
    return before;
  }
  const serving = servingRevision(view);
  const desired = desiredRevision(view);
  const replicas = view.replicas ?? [];
  const isEnforced = serving !== undefined && view.isAsked && replicas.length > 0;
  const { phase, reason, message } = judge(view, refusal);
  const about = { observedGeneration: view.generation, reason, message };
  let conditions: PolicyStatus['conditions'] = before?.conditions ?? [];
  conditions = setCondition(conditions, { ...about, type: POLICY_ACTIVE, status: isEnforced ? 'True' : 'False' }, now);
  const isUpToDate = phase === 'Active' || phase === 'RolledBack';
  conditions = setCondition(
    conditions,
    { ...about, type: POLICY_UP_TO_DATE, status: isUpToDate ? 'True' : 'False' },
    now,
  );
  const nextRetry = earliestRetry(desired, replicas);
  return {
    policyStatus: isEnforced ? 'active' : view.hasPolicyServer && replicas.length > 0 ? 'pending' : 'scheduled',
    mode: isEnforced ? (serving.snapshot.mode ?? 'protect') : 'unknown',
    phase,
    reason,
    message,
    observedGeneration: view.generation,
    desiredRevision: desired?.number ?? view.pin ?? 0,
    servingRevision: serving?.number ?? 0,
    readyReplicas: desired === undefined ? 0 : replicas.filter((replica) => serves(replica, desired)).length,
    totalReplicas: replicas.length,
    ...(nextRetry === undefined ? {} : { nextRetry: new Date(nextRetry).toISOString().replace(/\.\d+Z$/, 'Z') }),
    conditions,
  };
}

function serves({ state, revisions }: ReplicaFacts, { number }: RevisionFacts): boolean {
  return state === 'connected' && revisions.get(number)?.state === 'Serving';
}

function judge(view: RolloutView, refusal: Refusal | undefined): Verdict {
  const serving = servingRevision(view);
  const desired = desiredRevision(view);
  const bad = serving === undefined ? 'Error' : 'Degraded';
  const fallback = serving === undefined ? answeredBy(view) : `; revision ${serving.number} serves`;
  if (refusal !== undefined) {
    return { phase: view.isAsked ? 'Degraded' : 'Error', ...refusal };
  }
  if (!view.hasPolicyServer && view.replicas?.length === 0) {
    const message = `there is no PolicyServer ${view.spec.policyServer}: create it, or name another one in a new policy`;
    return { phase: 'Pending', reason: REASONS.policyServerNotFound, message };
  }
  if (desired === undefined) {
    const kept = view.revisions.map(({ number }) => number).join(', ');
    const message = `the policy is pinned to revision ${view.pin}, which is not kept; there are ${kept || 'none'}${fallback}`;
    return { phase: bad, reason: REASONS.pinNotFound, message };
  }
  if (hasFailed(desired, REASONS.pinned)) {
    const message = `revision ${desired.number} ${desired.state === 'Failed' ? 'failed' : 'cannot be validated yet'}: ${shortened(desired.message)}${fallback}`;
    return { phase: bad, reason: desired.reason, message };
  }
  if (view.replicas?.length === 0) {
    const message = `PolicyServer ${view.spec.policyServer} has no replica`;
    return { phase: serving === undefined ? 'Pending' : 'Error', reason: REASONS.noReplicas, message };
  }
  return underWay(view, desired, serving);
}

/** Nothing is wrong with the desired revision itself. */
function underWay(view: RolloutView, desired: RevisionFacts, serving: RevisionFacts | undefined): Verdict {
  const { replicas = [], now, settings } = view;
  const phase = serving === undefined ? 'Pending' : 'Updating';
  const { number } = desired;
  if (desired.state !== 'Validated' && desired.state !== 'Staged' && desired.state !== 'Serving') {
    return { phase, reason: REASONS.validating, message: `revision ${number} is being fetched and checked` };
  }
  const waiting = replicas.filter((replica) => !has(replica, desired));
  const trouble = troubleOf(desired, waiting, replicas.length);
  const isLate = now >= desired.stateSince + settings.progressDeadlineMs;
  if (trouble !== undefined) {
    // While nothing serves there is nothing that could be degraded: what a replica cannot load it answers by failurePolicy.
    const isError = serving === undefined && waiting.length === replicas.length;
    return { phase: isError ? 'Error' : 'Degraded', ...trouble };
  }
  const ready = replicas.length - waiting.length;
  const count = `${ready} of ${replicas.length} replicas`;
  if (waiting.length === 0 && desired === serving) {
    return atRest(view, desired);
  }
  if (isLate && desired !== serving) {
    const message = `revision ${number} is on ${count} after ${settings.progressDeadlineMs / 1000} s`;
    return { phase: serving === undefined ? 'Error' : 'Degraded', reason: REASONS.progressDeadlineExceeded, message };
  }
  if (desired !== serving) {
    return { phase, reason: REASONS.staging, message: `revision ${number} is loaded by ${count}` };
  }
  const reason = isLate ? REASONS.replicasStarting : REASONS.switching;
  return { phase: 'Updating', reason, message: `revision ${number} serves on ${count}` };
}

/** All replicas serve what is desired. */
function atRest(view: RolloutView, { number }: RevisionFacts): Verdict {
  const newest = view.revisions.at(-1)?.number ?? number;
  if (!view.isAsked) {
    return {
      phase: 'Updating',
      reason: REASONS.switching,
      message: `revision ${number} serves; the API server is told`,
    };
  }
  if (view.pin === undefined) {
    return { phase: 'Active', reason: REASONS.serving, message: `revision ${number} serves on every replica` };
  }
  return newest === number
    ? { phase: 'Active', reason: REASONS.pinned, message: `revision ${number} serves on every replica, and is pinned` }
    : {
        phase: 'RolledBack',
        reason: REASONS.pinned,
        message: `revision ${number} is pinned and serves on every replica; revision ${newest}, which the spec declares, does not`,
      };
}

/** Whether a replica is where the desired revision is. */
function has(replica: ReplicaFacts, desired: RevisionFacts): boolean {
  const state = replica.state === 'connected' ? replica.revisions.get(desired.number)?.state : undefined;
  return state === 'Serving' || (desired.state !== 'Serving' && state === 'Staged');
}

/** What replicas that do not have the revision say, or that they say nothing. */
function troubleOf(
  { number }: RevisionFacts,
  waiting: readonly ReplicaFacts[],
  total: number,
): Pick<Verdict, 'reason' | 'message'> | undefined {
  const troubled = waiting.flatMap((replica) => {
    const report = replica.revisions.get(number);
    if (replica.state === 'lost') {
      return [{ name: replica.name, reason: REASONS.replicaUnreachable, message: 'does not answer' }];
    }
    return replica.state === 'connected' && report?.state === 'Failed'
      ? [{ name: replica.name, reason: report.reason, message: report.message }]
      : [];
  });
  const [first] = troubled.toSorted((a, b) => rank(a.reason) - rank(b.reason) || (a.name < b.name ? -1 : 1));
  if (first === undefined) {
    return undefined;
  }
  const named = troubled.slice(0, MAX_NAMED_REPLICAS).map(({ name, message }) => `${name}: ${shortened(message)}`);
  const others = troubled.length > named.length ? `; and ${troubled.length - named.length} more` : '';
  const message = `revision ${number} is not on ${troubled.length} of ${total} replicas: ${named.join('; ')}${others}`;
  return { reason: first.reason, message };
}

/** What a replica says tells more than that another one says nothing. */
function rank(reason: string): number {
  return reason === REASONS.replicaUnreachable ? 1 : 0;
}

function answeredBy({ spec }: RolloutView): string {
  return spec.failurePolicy === 'Ignore'
    ? '; nothing serves: requests are admitted with a warning (failurePolicy Ignore)'
    : '; nothing serves: requests are rejected (failurePolicy Fail)';
}

function earliestRetry(desired: RevisionFacts | undefined, replicas: readonly ReplicaFacts[]): number | undefined {
  if (desired === undefined) {
    return undefined;
  }
  const times = [desired.nextRetry, ...replicas.map(({ revisions }) => revisions.get(desired.number)?.nextRetry)];
  return times.filter((time) => time !== undefined).toSorted((a, b) => a - b)[0];
}

function shortened(text: string): string {
  return text.length <= MAX_DETAIL_LENGTH ? text : `${text.slice(0, MAX_DETAIL_LENGTH - 1)}…`;
}
