// The phase of a policy, why it is in it, and what people read about it.
import type { PolicyStatus, Readiness } from '../../resources/index.ts';
import { REASONS } from './reasons.ts';
import {
  answeringRevision,
  deadlineOf,
  desiredRevision,
  hasFailed,
  isDeclared,
  isFailedOn,
  isLoadedBy,
  isServedBy,
  isUnservable,
  servingRevision,
} from './revision-choice.ts';
import type { ReplicaFacts, RevisionFacts, RolloutView } from './rollout-view.ts';

/** Replicas, and numbers of revisions, that a message names; of the others it tells how many there are. */
const MAX_NAMED = 3;
const MAX_NUMBERS = 20;
/** Longest part of a message that is somebody else's words: three of them fit into the message of a status. Characters. */
const MAX_DETAIL_LENGTH = 2_000;

/** What the status says of a policy: its phase, and whether that is what the spec asks for, on its way, or stuck. */
export interface Verdict extends Pick<Required<PolicyStatus>, 'phase' | 'reason' | 'message'>, Readiness {}

interface Trouble extends Pick<Verdict, 'reason' | 'message'> {
  /** Whether nothing more happens until a user changes something. Default: the controller, or a replica, tries again. */
  readonly isStalled?: boolean;
}

type Found = Trouble & Pick<Verdict, 'phase'>;

/**
 * The phase of a policy, by all that is known of it. A phase at rest (Active, RolledBack) promises that one revision answers.
 *
 * @param failure of the last reconciliation; what it could not write may be what is missing
 */
export function judge(view: RolloutView, failure: Readiness | undefined): Verdict {
  const { isStalled = false, ...found } = phaseOf(view);
  const isAtRest = found.phase === 'Active' || found.phase === 'RolledBack';
  const verdict: Verdict = { ...found, state: isStalled ? 'stalled' : isAtRest ? 'ready' : 'reconciling' };
  if (failure === undefined) {
    return verdict;
  }
  const { reason } = failure;
  const detail = shortened(failure.message);
  // What needs a user needs one whatever else fails.
  const state = isStalled ? 'stalled' : failure.state;
  if (reason !== REASONS.webhookRefused) {
    return { phase: found.phase, state, reason, message: `${detail}; ${found.message}` };
  }
  const phase = view.replicas === undefined ? found.phase : view.isAsked ? phaseOfTrouble(view) : 'Error';
  return { phase, state, reason, message: `the API server does not ask as it should: ${detail}` };
}

function phaseOf(view: RolloutView): Found {
  if (view.replicas === undefined) {
    const message = 'the controller has just begun, and asks the replicas what they have';
    return { phase: 'Pending', reason: REASONS.controllerStarting, message };
  }
  const { spec, pin } = view;
  if (!isDeclared(view)) {
    const phase = servingRevision(view) === undefined ? 'Pending' : 'Updating';
    return { phase, reason: REASONS.validating, message: 'the spec has no revision yet' };
  }
  const desired = desiredRevision(view);
  const bad = phaseOfTrouble(view);
  const hasReplicas = view.replicas.length > 0;
  const server = spec.policyServer ?? 'default';
  // Who is asked and has no answer rejects or admits by the failurePolicy: that is more than waiting.
  const idle = view.isAsked ? 'Error' : 'Pending';
  if (!hasReplicas && !view.hasPolicyServer) {
    const message = `there is no PolicyServer ${server}, and no replica of it: create it${answeredBy(view)}`;
    return { phase: idle, reason: REASONS.policyServerNotFound, message };
  }
  if (desired === undefined) {
    const message = `the policy is pinned to revision ${pin}, which is not kept (kept are ${keptOf(view)}): pin another one, or take the pin away${answeredBy(view)}`;
    return { phase: bad, reason: REASONS.pinNotFound, message, isStalled: true };
  }
  if (hasFailed(desired)) {
    const how = desired.state === 'Failed' ? 'failed' : 'cannot be validated yet';
    const message = `revision ${desired.number} ${how}: ${shortened(desired.message)}${answeredBy(view)}`;
    const reason = desired.reason === '' ? REASONS.replicaFailed : desired.reason;
    return { phase: bad, reason, message, isStalled: desired.state === 'Failed' };
  }
  if (!hasReplicas) {
    const message = `PolicyServer ${server} has no replica: start one${answeredBy(view)}`;
    return { phase: idle, reason: REASONS.noReplicas, message };
  }
  const serving = servingRevision(view);
  return desired === serving ? ofServing(view, desired) : underWay(view, desired, serving);
}

/** The phase of a policy with which something is wrong. */
function phaseOfTrouble(view: RolloutView): 'Degraded' | 'Error' {
  return answeringRevision(view) === undefined ? 'Error' : 'Degraded';
}

/** The desired revision is on its way, and nothing is wrong with itself. */
function underWay(view: RolloutView, desired: RevisionFacts, serving: RevisionFacts | undefined): Found {
  const { replicas = [], now, settings } = view;
  const { number, state } = desired;
  const phase = serving === undefined ? 'Pending' : 'Updating';
  const bad = phaseOfTrouble(view);
  if (state === 'Candidate' && replicas.every((replica) => replica.state === 'lost')) {
    const message = `revision ${number} waits to be checked: no replica answers the controller${answeredBy(view)}`;
    return { phase: serving === undefined ? phase : bad, reason: REASONS.replicaUnreachable, message };
  }
  if (state !== 'Validated' && state !== 'Staged') {
    return { phase, reason: REASONS.validating, message: `revision ${number} is being fetched and checked` };
  }
  const waiting = replicas.filter((replica) => !isLoadedBy(replica, desired));
  const trouble = troubleOf(view, desired, waiting);
  if (trouble !== undefined) {
    // Where nothing served before, what some replicas have is on its way to serve still.
    return { phase: serving === undefined && !isUnservable(view, desired) ? 'Degraded' : bad, ...trouble };
  }
  const count = `${replicas.length - waiting.length} of ${replicas.length} replicas`;
  if (waiting.length > 0 && now >= deadlineOf(view, desired)) {
    const message = `after ${settings.progressDeadlineMs / 1000} s revision ${number} is loaded by ${count}${namesOf(waiting)}${answeredBy(view)}`;
    return { phase: bad, reason: REASONS.progressDeadlineExceeded, message, isStalled: true };
  }
  return { phase, reason: REASONS.staging, message: `revision ${number} is loaded by ${count}` };
}

/** The desired revision is the one that serves, if not everywhere. */
function ofServing(view: RolloutView, desired: RevisionFacts): Found {
  const { replicas = [], now, settings } = view;
  const { number } = desired;
  const waiting = replicas.filter((replica) => !isServedBy(replica, desired));
  if (waiting.length === 0) {
    return atRest(view, desired);
  }
  const trouble = troubleOf(view, desired, waiting);
  if (trouble !== undefined) {
    return { phase: phaseOfTrouble(view), ...trouble };
  }
  const message = `revision ${number} serves on ${replicas.length - waiting.length} of ${replicas.length} replicas`;
  const phase = view.isAsked ? 'Updating' : 'Pending';
  if (now < deadlineOf(view, desired)) {
    return { phase, reason: REASONS.switching, message };
  }
  const stuck = waiting.filter((replica) => !isStarting(replica, desired));
  return stuck.length === 0
    ? { phase, reason: REASONS.replicasStarting, message }
    : {
        phase: phaseOfTrouble(view),
        reason: REASONS.progressDeadlineExceeded,
        message: `${message} after ${settings.progressDeadlineMs / 1000} s${namesOf(stuck)}`,
        isStalled: true,
      };
}

/** Whether a replica is on its way to what has served for long: it is new, or began anew. */
function isStarting({ state, revisions }: ReplicaFacts, { number }: RevisionFacts): boolean {
  return state === 'connecting' || revisions.get(number)?.state === 'Loading';
}

/** All replicas serve what is desired. */
function atRest(view: RolloutView, { number }: RevisionFacts): Found {
  const newest = view.revisions.at(-1)?.number ?? number;
  if (!view.isAsked) {
    const message = `revision ${number} serves on every replica; the API server is told to ask`;
    return { phase: 'Pending', reason: REASONS.switching, message };
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

/** What replicas that do not have the revision say, or that they say nothing. */
function troubleOf(view: RolloutView, revision: RevisionFacts, waiting: readonly ReplicaFacts[]): Trouble | undefined {
  const troubled = waiting.flatMap((replica): (Trouble & { readonly name: string })[] => {
    const report = replica.revisions.get(revision.number);
    if (replica.state === 'lost') {
      return [{ name: replica.name, reason: REASONS.replicaUnreachable, message: 'does not answer the controller' }];
    }
    if (!isFailedOn(replica, revision)) {
      return [];
    }
    const { reason = '', message = '', nextRetry } = report ?? {};
    return [
      {
        name: replica.name,
        reason: reason || REASONS.replicaFailed,
        message: message || 'gives no reason',
        isStalled: nextRetry === undefined,
      },
    ];
  });
  // What a replica says tells more than that another one says nothing.
  const rank = ({ reason }: Trouble): number => (reason === REASONS.replicaUnreachable ? 1 : 0);
  const [first, ...rest] = troubled.toSorted((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
  if (first === undefined) {
    return undefined;
  }
  const named = [first, ...rest.slice(0, MAX_NAMED - 1)].map(({ name, message }) => `${name}: ${shortened(message)}`);
  const others = troubled.length > named.length ? `; and ${troubled.length - named.length} more` : '';
  const total = view.replicas?.length ?? 0;
  const message = `revision ${revision.number} is not on ${troubled.length} of ${total} replicas: ${named.join('; ')}${others}${answeredBy(view)}`;
  return { reason: first.reason, message, isStalled: troubled.some((one) => one.isStalled === true) };
}

function namesOf(replicas: readonly ReplicaFacts[]): string {
  const named = replicas.slice(0, MAX_NAMED).map(({ name }) => name);
  const others = replicas.length > named.length ? ` and ${replicas.length - named.length} more` : '';
  return `, not by ${named.join(', ')}${others}`;
}

function keptOf({ revisions }: RolloutView): string {
  const numbers = revisions.map(({ number }) => number);
  const shown = numbers.slice(-MAX_NUMBERS).join(', ');
  return numbers.length > MAX_NUMBERS ? `the last ${MAX_NUMBERS} of ${numbers.length}: ${shown}` : shown || 'none';
}

/** The end of a message about what is wrong: what becomes of requests. */
function answeredBy(view: RolloutView): string {
  const answering = answeringRevision(view);
  if (answering !== undefined) {
    return desiredRevision(view) === answering ? '' : `; revision ${answering.number} serves`;
  }
  if (!view.isAsked) {
    return '; nothing serves, and the API server does not ask yet';
  }
  return view.spec.failurePolicy === 'Ignore'
    ? '; nothing serves: requests are admitted with a warning (failurePolicy Ignore)'
    : '; nothing serves: requests are rejected (failurePolicy Fail)';
}

function shortened(text: string): string {
  return text.length <= MAX_DETAIL_LENGTH ? text : `${text.slice(0, MAX_DETAIL_LENGTH - 1).toWellFormed()}…`;
}
