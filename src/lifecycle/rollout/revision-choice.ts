// Which revisions of a policy matter, and how far they are.
import { isDeepStrictEqual } from 'node:util';
import { servesRather } from '../../resources/index.ts';
import { REASONS } from './reasons.ts';
import type { ReplicaFacts, RevisionFacts, RolloutView } from './rollout-view.ts';

type Revisions = Pick<RolloutView, 'revisions'>;

/** Whether the newest revision is what the policy's spec and annotations say: otherwise one is to be made. */
export function isDeclared(view: Pick<RolloutView, 'revisions' | 'spec' | 'ownWebhook'>): boolean {
  return hasSpec(view) && view.revisions.at(-1)?.ownWebhook === view.ownWebhook;
}

/** Whether the newest revision has the policy's spec. */
export function hasSpec({ revisions, spec }: Pick<RolloutView, 'revisions' | 'spec'>): boolean {
  return isDeepStrictEqual(revisions.at(-1)?.snapshot, spec);
}

/** The revision that is to serve: the pinned one, else the newest. Undefined: the policy is pinned to one that is not kept. */
export function desiredRevision({ pin, revisions }: Pick<RolloutView, 'pin' | 'revisions'>): RevisionFacts | undefined {
  return pin === undefined ? revisions.at(-1) : revisions.find(({ number }) => number === pin);
}

/** The revision that serves: of those that read so, the one that began last. Replicas choose by the same rule. */
export function servingRevision({ revisions }: Revisions): RevisionFacts | undefined {
  return latest(revisions.filter(({ state }) => state === 'Serving'));
}

/** The last revision that served and was not found wrong since: what there is to fall back on. */
export function lastGoodRevision({ revisions }: Revisions): RevisionFacts | undefined {
  return latest(revisions.filter(({ order, state }) => order > 0 && state !== 'Failed'));
}

/**
 * The revision that the rollout goes towards: the desired one, unless it cannot serve. Then the last good one serves on, or
 * again, unless the newest failed and policies are to reject then: undefined.
 */
export function goalRevision(view: RolloutView): RevisionFacts | undefined {
  const desired = desiredRevision(view);
  if (desired !== undefined && desired.state !== 'Failed') {
    return desired;
  }
  const isRejecting = desired !== undefined && desired === view.revisions.at(-1) && view.settings.degraded === 'Reject';
  return isRejecting ? undefined : (servingRevision(view) ?? lastGoodRevision(view));
}

/**
 * The revision that requests are answered by: what replicas that answer say; while none does, what they were told last.
 * Undefined: none, so far as it is known.
 */
export function answeringRevision(view: RolloutView): RevisionFacts | undefined {
  const { replicas = [], revisions } = view;
  const connected = replicas.filter(({ state }) => state === 'connected');
  if (connected.length > 0) {
    return latest(revisions.filter((revision) => connected.some((replica) => isAnsweredBy(replica, revision))));
  }
  return replicas.length > 0 || view.replicas === undefined ? servingRevision(view) : undefined;
}

/** Whether a revision could not get further, for now or for good; one that waits for the end of a pin did not fail. */
export function hasFailed({ state, reason }: RevisionFacts): boolean {
  return state === 'Failed' || (state === 'Candidate' && reason !== '' && reason !== REASONS.pinned);
}

/** Whether replicas are to load the revision beside what serves. */
export function isStaging({ state }: RevisionFacts): boolean {
  return state === 'Validated' || state === 'Staged';
}

/** When the revision was long enough in its state to be decided about without some of the replicas. Milliseconds since 1970. */
export function deadlineOf({ settings }: Pick<RolloutView, 'settings'>, { stateSince }: RevisionFacts): number {
  return stateSince + settings.progressDeadlineMs;
}

/** Whether a replica answers the controller, and requests with this revision. */
export function isAnsweredBy({ state, revisions }: ReplicaFacts, { number }: RevisionFacts): boolean {
  return state === 'connected' && revisions.get(number)?.state === 'Serving';
}

/**
 * Whether a replica serves the revision for good: because it was told to as often as the controller said so. One that has yet
 * to hear of two flips, to another revision and back, still answers by this one, but not for long.
 */
export function isServedBy(replica: ReplicaFacts, revision: RevisionFacts): boolean {
  const { order = revision.order } = replica.revisions.get(revision.number) ?? {};
  return isAnsweredBy(replica, revision) && order >= revision.order;
}

/** Whether a replica answers, and has loaded the revision, be it beside another one. */
export function isLoadedBy({ state, revisions }: ReplicaFacts, { number }: RevisionFacts): boolean {
  const report = revisions.get(number)?.state;
  return state === 'connected' && (report === 'Staged' || report === 'Serving');
}

/** Whether a replica answers, and could not load the revision. */
export function isFailedOn({ state, revisions }: ReplicaFacts, { number }: RevisionFacts): boolean {
  return state === 'connected' && revisions.get(number)?.state === 'Failed';
}

/**
 * Whether nothing can serve, so that requests are to be answered by the failurePolicy: the desired revision failed, is not
 * kept, or could be loaded by no replica. While it is on its way for the first time, the policy is not asked yet.
 */
export function isUnservable(view: RolloutView, desired: RevisionFacts | undefined): boolean {
  if (servingRevision(view) !== undefined) {
    return false;
  }
  if (desired === undefined || hasFailed(desired)) {
    return true;
  }
  const { replicas = [], now } = view;
  const isRefused = replicas.length > 0 && replicas.every((replica) => isFailedOn(replica, desired));
  return isStaging(desired) && (isRefused || now >= deadlineOf(view, desired));
}

function latest(revisions: readonly RevisionFacts[]): RevisionFacts | undefined {
  return revisions.reduce<RevisionFacts | undefined>(
    (last, one) => (last === undefined || servesRather(one, last) ? one : last),
    undefined,
  );
}
