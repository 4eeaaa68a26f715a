// The phase of a policy, with its reason and message.
import { ANNOTATIONS, type AdmissionPolicyStatus, type Readiness } from '../../resources/index.ts';
import {
  answeringRevision,
  deadlineOf,
  desiredRevision,
  hasFailed,
  hasServed,
  isDeclared,
  isFailedOn,
  isLoadedOn,
  isServingOn,
  isSwitchedTo,
  isUnservable,
  REASONS,
  type ReplicaFacts,
  servingRevision,
} from '../../rollout/index.ts';
import type { AdmissionRevision, AdmissionRolloutView } from './admission-rollout-view.ts';
import { requestOutcome } from './request-outcome.ts';
import { isCovered } from './webhook-state.ts';
import { listed, shortened } from '../../values/index.ts';

/** Replicas that a message names; further ones are counted. */
const MAX_NAMED = 3;
const MAX_NUMBERS = 20;
/** Longest foreign text in a message: three of them fit into the message of a status. Characters. */
const MAX_DETAIL_LENGTH = 2_000;

/** The phase of a policy, and whether it is ready, reconciling or stalled. */
export interface RolloutPhase
  extends Pick<Required<AdmissionPolicyStatus>, 'phase' | 'reason' | 'message'>, Readiness {}

interface Failure extends Pick<RolloutPhase, 'reason' | 'message'> {
  /** Whether a user must change something. Default: the controller or a replica retries. */
  readonly isStalled?: boolean;
}

type PhaseReport = Failure & Pick<RolloutPhase, 'phase'>;

/**
 * The phase of a policy. In a phase at rest (Active, RolledBack), one revision answers everywhere.
 *
 * @param failure of the reconciliation
 */
export function rolloutPhase(view: AdmissionRolloutView, failure: Readiness | undefined): RolloutPhase {
  const { isStalled = false, ...report } = phaseWithoutFailure(view);
  const isAtRest = report.phase === 'Active' || report.phase === 'RolledBack';
  const current: RolloutPhase = { ...report, state: isStalled ? 'stalled' : isAtRest ? 'ready' : 'reconciling' };
  if (failure === undefined) {
    return current;
  }
  const { reason } = failure;
  const detail = shortened(failure.message, MAX_DETAIL_LENGTH);
  // If a user must act, another failure does not change that.
  const state = isStalled ? 'stalled' : failure.state;
  if (reason !== REASONS.webhookRefused) {
    return { phase: report.phase, state, reason, message: `${detail}; ${report.message}` };
  }
  const phase = view.replicas === undefined ? report.phase : isCovered(view) ? failurePhase(view) : 'Error';
  return { phase, state, reason, message: `the webhook configuration could not be written: ${detail}` };
}

/** Reasons while all is in order. All others are of failures, whose messages say how requests are answered meanwhile. */
const IN_ORDER: ReadonlySet<string> = new Set([
  REASONS.controllerStarting,
  REASONS.validating,
  REASONS.staging,
  REASONS.switching,
  REASONS.replicasStarting,
  REASONS.serving,
  REASONS.pinned,
]);

function phaseWithoutFailure(view: AdmissionRolloutView): PhaseReport {
  const report = phaseOfDesired(view);
  const stop = servingFailure(view);
  if (stop === undefined) {
    return IN_ORDER.has(report.reason) ? report : { ...report, message: `${report.message}${outcomeText(view)}` };
  }
  // What stops requests comes first.
  return {
    phase: failurePhase(view),
    reason: stop.reason,
    message: `${stop.message}; ${report.message}${outcomeText(view)}`,
    isStalled: report.isStalled === true || stop.isStalled === true,
  };
}

/** Why replicas serve nothing, when it is not for the desired revision: they cannot load the one before it either. */
function servingFailure(view: AdmissionRolloutView): Failure | undefined {
  const serving = servingRevision(view);
  if (serving === undefined || !isDeclared(view) || serving === desiredRevision(view)) {
    return undefined;
  }
  const idle = (view.replicas ?? []).filter(
    (replica) => isFailedOn(replica, serving) && !view.revisions.some((revision) => isServingOn(replica, revision)),
  );
  return replicaFailure(view, serving, idle);
}

function phaseOfDesired(view: AdmissionRolloutView): PhaseReport {
  if (view.replicas === undefined) {
    const message = 'the controller has just started, and waits for reports of the replicas';
    return { phase: 'Pending', reason: REASONS.controllerStarting, message };
  }
  const { spec, pin } = view;
  if (!isDeclared(view)) {
    const phase = servingRevision(view) === undefined ? 'Pending' : 'Updating';
    return { phase, reason: REASONS.validating, message: 'the spec has no revision yet' };
  }
  const { disarmed } = view.settings;
  if (disarmed !== undefined) {
    return disarmedPhase(view, disarmed);
  }
  const desired = desiredRevision(view);
  const failed = failurePhase(view);
  const hasReplicas = view.replicas.length > 0;
  const server = spec.policyServer ?? 'default';
  // While the policy is covered, its requests get the failurePolicy: worse than pending.
  const idle = isCovered(view) ? 'Error' : 'Pending';
  if (!hasReplicas && !view.hasPolicyServer) {
    const message = `PolicyServer ${server} does not exist, and has no replica: create it`;
    return { phase: idle, reason: REASONS.policyServerNotFound, message };
  }
  if (desired === undefined) {
    const message = `the policy is pinned to revision ${pin}, which does not exist (existing: ${numbersOf(view)}): pin another one, or remove the pin`;
    return { phase: failed, reason: REASONS.pinNotFound, message, isStalled: true };
  }
  if (hasFailed(desired)) {
    const how = desired.state === 'Failed' ? 'failed' : 'cannot be validated yet';
    const message = `revision ${desired.number} ${how}: ${shortened(desired.message, MAX_DETAIL_LENGTH)}`;
    const reason = desired.reason === '' ? REASONS.replicaFailed : desired.reason;
    return { phase: failed, reason, message, isStalled: desired.state === 'Failed' };
  }
  if (!hasReplicas) {
    const message = `PolicyServer ${server} has no replica: start one`;
    return { phase: idle, reason: REASONS.noReplicas, message };
  }
  const serving = servingRevision(view);
  return desired === serving ? servingPhase(view, desired) : stagingPhase(view, desired, serving);
}

/** A policy that is disarmed, or about to be. */
function disarmedPhase(view: AdmissionRolloutView, why: string): PhaseReport {
  const isDone = !isCovered(view) && servingRevision(view) === undefined;
  const message = isDone
    ? `disarmed (${why}) until the annotation ${ANNOTATIONS.disarmed} is removed`
    : `is being disarmed (${why})`;
  return { phase: 'Error', reason: REASONS.disarmed, message, isStalled: isDone };
}

/** The phase of a policy with a failure. */
function failurePhase(view: AdmissionRolloutView): 'Degraded' | 'Error' {
  return answeringRevision(view) === undefined ? 'Error' : 'Degraded';
}

/** The desired revision is on its way, and has not failed itself. */
function stagingPhase(
  view: AdmissionRolloutView,
  desired: AdmissionRevision,
  serving: AdmissionRevision | undefined,
): PhaseReport {
  const { replicas = [], now, settings } = view;
  const { number, state } = desired;
  const phase = serving === undefined ? 'Pending' : 'Updating';
  const failed = failurePhase(view);
  if (state === 'Candidate' && replicas.every((replica) => replica.state === 'lost')) {
    const message = `revision ${number} cannot be checked: no replica is connected to the controller`;
    return { phase: serving === undefined ? phase : failed, reason: REASONS.replicaUnreachable, message };
  }
  if (state !== 'Validated' && state !== 'Staged') {
    return { phase, reason: REASONS.validating, message: `revision ${number} is being fetched and checked` };
  }
  const waiting = replicas.filter((replica) => !isLoadedOn(replica, desired));
  const failure = replicaFailure(view, desired, waiting);
  if (failure !== undefined) {
    // If nothing served before, replicas that have loaded the revision will still serve it.
    return { phase: serving === undefined && !isUnservable(view, desired) ? 'Degraded' : failed, ...failure };
  }
  const count = `${replicas.length - waiting.length} of ${replicas.length} replicas`;
  if (waiting.length > 0 && now >= deadlineOf(view, desired)) {
    const message = `after ${settings.progressDeadlineMs / 1000} s revision ${number} is loaded by ${count}${namesOf(waiting)}`;
    return { phase: failed, reason: REASONS.progressDeadlineExceeded, message, isStalled: true };
  }
  return { phase, reason: REASONS.staging, message: `revision ${number} is loaded by ${count}` };
}

/** The desired revision serves, perhaps not on every replica. */
function servingPhase(view: AdmissionRolloutView, desired: AdmissionRevision): PhaseReport {
  const { replicas = [], now, settings } = view;
  const { number } = desired;
  const waiting = replicas.filter((replica) => !isSwitchedTo(replica, desired));
  if (waiting.length === 0) {
    return settledPhase(view, desired);
  }
  const failure = replicaFailure(view, desired, waiting);
  if (failure !== undefined) {
    return { phase: failurePhase(view), ...failure };
  }
  const message = `revision ${number} serves on ${replicas.length - waiting.length} of ${replicas.length} replicas`;
  const phase = isCovered(view) ? 'Updating' : 'Pending';
  if (now < deadlineOf(view, desired)) {
    return { phase, reason: REASONS.switching, message };
  }
  const stuck = waiting.filter((replica) => !isStarting(replica, desired));
  return stuck.length === 0
    ? { phase, reason: REASONS.replicasStarting, message }
    : {
        phase: failurePhase(view),
        reason: REASONS.progressDeadlineExceeded,
        message: `${message} after ${settings.progressDeadlineMs / 1000} s${namesOf(stuck)}`,
        isStalled: true,
      };
}

/** Whether a replica has just started and is still loading the serving revision. */
function isStarting({ state, revisions }: ReplicaFacts, { number }: AdmissionRevision): boolean {
  return state === 'connecting' || revisions.get(number)?.state === 'Loading';
}

/** All replicas serve the desired revision. */
function settledPhase(view: AdmissionRolloutView, { number }: AdmissionRevision): PhaseReport {
  const newest = view.revisions.at(-1)?.number ?? number;
  if (!isCovered(view)) {
    const message = `revision ${number} serves on every replica; its webhook is not written yet`;
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

/** The failure of replicas that lack the revision, or are not connected. */
function replicaFailure(
  view: AdmissionRolloutView,
  revision: AdmissionRevision,
  waiting: readonly ReplicaFacts[],
): Failure | undefined {
  const failures = waiting.flatMap((replica): (Failure & { readonly name: string })[] => {
    const report = replica.revisions.get(revision.number);
    if (replica.state === 'lost') {
      return [
        { name: replica.name, reason: REASONS.replicaUnreachable, message: 'is not connected to the controller' },
      ];
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
  // A reported error explains more than a lost connection.
  const rank = ({ reason }: Failure): number => (reason === REASONS.replicaUnreachable ? 1 : 0);
  const [first, ...rest] = failures.toSorted((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
  if (first === undefined) {
    return undefined;
  }
  const named = [first, ...rest.slice(0, MAX_NAMED - 1)].map(
    ({ name, message }) => `${name}: ${shortened(message, MAX_DETAIL_LENGTH)}`,
  );
  const total = view.replicas?.length ?? 0;
  const message = `revision ${revision.number} is not on ${failures.length} of ${total} replicas: ${listed(named, MAX_NAMED, '; ', failures.length)}`;
  return { reason: first.reason, message, isStalled: failures.some((one) => one.isStalled === true) };
}

function namesOf(replicas: readonly ReplicaFacts[]): string {
  const names = replicas.map(({ name }) => name);
  return `, not by ${listed(names, MAX_NAMED)}`;
}

function numbersOf({ revisions }: AdmissionRolloutView): string {
  const numbers = revisions.map(({ number }) => number);
  const shown = numbers.slice(-MAX_NUMBERS).join(', ');
  return numbers.length > MAX_NUMBERS ? `the last ${MAX_NUMBERS} of ${numbers.length}: ${shown}` : shown || 'none';
}

/** End of a failure message: how requests are answered meanwhile. */
function outcomeText(view: AdmissionRolloutView): string {
  const answering = answeringRevision(view);
  const outcome = requestOutcome(view);
  if (outcome.status === 'Unknown') {
    return `; ${outcome.message}`;
  }
  if (answering !== undefined) {
    return desiredRevision(view) === answering ? '' : `; revision ${answering.number} serves`;
  }
  if (!isCovered(view)) {
    return `; nothing serves, and the policy is not enforced${hasServed(view) ? '' : ' yet'}`;
  }
  return `; nothing serves: ${outcome.message}`;
}
