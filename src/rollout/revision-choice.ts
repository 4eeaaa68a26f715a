// Selects revisions of a policy, and compares them with the state of replicas.
import { isDeepStrictEqual } from 'node:util';
import { servesInsteadOf } from '../resources/index.ts';
import { movedModules, pinnedSpec } from '../control/index.ts';
import { REASONS } from './reasons.ts';
import type { ReplicaFacts, RevisionFacts, RolloutView } from './rollout-view.ts';

type Revisions<Spec = unknown> = Pick<RolloutView<Spec>, 'revisions'>;

/** Whether the newest revision matches the policy's spec and annotations; otherwise a new one is created. */
export function isDeclared(view: Pick<RolloutView, 'revisions' | 'spec' | 'ownWebhook'>): boolean {
  return hasSpec(view) && view.revisions.at(-1)?.ownWebhook === view.ownWebhook;
}

/** Whether the newest revision has the policy's spec. */
export function hasSpec({ revisions, spec }: Pick<RolloutView, 'revisions' | 'spec'>): boolean {
  return isDeepStrictEqual(revisions.at(-1)?.snapshot, spec);
}

/** The annotation `refresh` that was handled last. */
export function handledRefresh({ refresh, refreshed }: RevisionFacts): string | undefined {
  return refreshed ?? refresh;
}

/**
 * The revision that a spec rolls back to: the newest validated revision whose pinned spec equals it. Undefined if there
 * is none. Applying the same spec by hand counts as well.
 */
export function rollbackOf(spec: unknown, revisions: readonly RevisionFacts[]): number | undefined {
  return revisions.findLast(
    ({ snapshot, modules }) => modules.length > 0 && isDeepStrictEqual(pinnedSpec(snapshot, modules), spec),
  )?.number;
}

/** The revision that should serve: the pinned one, else the newest. Undefined if the pinned one does not exist. */
export function desiredRevision<Spec>({
  pin,
  revisions,
}: Pick<RolloutView<Spec>, 'pin' | 'revisions'>): RevisionFacts<Spec> | undefined {
  return pin === undefined ? revisions.at(-1) : revisions.find(({ number }) => number === pin);
}

/** The revision that serves: the last to start among those in state Serving. Replicas use the same rule. */
export function servingRevision<Spec>({ revisions }: Revisions<Spec>): RevisionFacts<Spec> | undefined {
  return latest(revisions.filter(({ state }) => state === 'Serving'));
}

/** The last revision that served and has not failed since: the fallback. */
export function lastGoodRevision<Spec>({ revisions }: Revisions<Spec>): RevisionFacts<Spec> | undefined {
  return latest(revisions.filter(({ order, state }) => order > 0 && state !== 'Failed'));
}

/** The revision whose modules and validation others inherit: what serves, else the last good one. */
export function validatedBase<Spec>(view: Revisions<Spec>): RevisionFacts<Spec> | undefined {
  return servingRevision(view) ?? lastGoodRevision(view);
}

/** Whether two revisions differ at most in how the policy is enforced, and have the same modules. */
export function evaluatesAs<Spec>(
  { rules }: Pick<RolloutView<Spec>, 'rules'>,
  revision: RevisionFacts<Spec>,
  base: RevisionFacts<Spec>,
): boolean {
  const areModulesKnown = revision.modules.length > 0;
  return (
    revision !== base &&
    rules.evaluates(revision.snapshot, base) &&
    (areModulesKnown
      ? movedModules(base.modules, revision.modules).length === 0
      : // A refresh resolves the modules again.
        handledRefresh(revision) === handledRefresh(base))
  );
}

/** The last revision that served, also when it failed or was retired later. */
export function lastServedRevision<Spec>({ revisions }: Revisions<Spec>): RevisionFacts<Spec> | undefined {
  return latest(revisions.filter(({ order }) => order > 0));
}

/**
 * The target of the rollout: the desired revision, or the last good one if the desired one cannot serve. Undefined if
 * the newest failed and the last good one is not to serve on, and while the policy is disarmed.
 */
export function goalRevision<Spec>(view: RolloutView<Spec>): RevisionFacts<Spec> | undefined {
  if (view.settings.disarmed !== undefined) {
    return undefined;
  }
  const desired = desiredRevision(view);
  if (desired !== undefined && desired.state !== 'Failed') {
    return desired;
  }
  const isEnding = desired !== undefined && desired === view.revisions.at(-1) && view.settings.degraded !== 'Serve';
  return isEnding ? undefined : (servingRevision(view) ?? lastGoodRevision(view));
}

/**
 * The revision that answers requests, as connected replicas report; without one, as they were last instructed.
 * Undefined if there is none, or it is unknown.
 */
export function answeringRevision<Spec>(view: RolloutView<Spec>): RevisionFacts<Spec> | undefined {
  const { replicas = [], revisions } = view;
  const connected = replicas.filter(({ state }) => state === 'connected');
  if (connected.length > 0) {
    return latest(revisions.filter((revision) => connected.some((replica) => isServingOn(replica, revision))));
  }
  return replicas.length > 0 || view.replicas === undefined ? servingRevision(view) : undefined;
}

/** Whether a revision failed, for now or permanently. Waiting for the end of a pin is no failure. */
export function hasFailed(revision: Pick<RevisionFacts, 'state' | 'reason'>): boolean {
  return cannotServe(revision) && revision.reason !== REASONS.pinned;
}

/** Whether a revision failed for parameters that have changed since. */
export function hasOtherParameters({ replicas = [] }: RolloutView, revision: RevisionFacts): boolean {
  const { state, triedParameters, number } = revision;
  return (
    state === 'Failed' &&
    triedParameters !== undefined &&
    replicas.some((replica) => {
      const { parameters = triedParameters } = replica.revisions.get(number) ?? {};
      return replica.state === 'connected' && parameters !== triedParameters;
    })
  );
}

/** Whether replicas cannot serve the revision: it failed, or waits for the end of a pin. */
export function cannotServe({ state, reason }: Pick<RevisionFacts, 'state' | 'reason'>): boolean {
  return state === 'Failed' || (state === 'Candidate' && reason !== '');
}

/** Whether replicas should load the revision beside the serving one. */
export function isStaging({ state }: RevisionFacts): boolean {
  return state === 'Validated' || state === 'Staged';
}

/** When the progress deadline of the revision's state ends. Milliseconds since 1970. */
export function deadlineOf({ settings }: Pick<RolloutView, 'settings'>, { stateSince }: RevisionFacts): number {
  return stateSince + settings.progressDeadlineMs;
}

/** Whether a replica is connected and answers requests with the revision. */
export function isServingOn({ state, revisions }: ReplicaFacts, { number }: RevisionFacts): boolean {
  return state === 'connected' && revisions.get(number)?.state === 'Serving';
}

/**
 * Whether a replica serves the revision by its latest order. After two quick switches, to another revision and back, a
 * replica may still serve this one by the older order; it will switch twice.
 */
export function isSwitchedTo(replica: ReplicaFacts, revision: RevisionFacts): boolean {
  const { order = revision.order } = replica.revisions.get(revision.number) ?? {};
  return isServingOn(replica, revision) && order >= revision.order;
}

/** Whether a replica is connected and has loaded the revision, serving or not. */
export function isLoadedOn({ state, revisions }: ReplicaFacts, { number }: RevisionFacts): boolean {
  const report = revisions.get(number)?.state;
  return state === 'connected' && (report === 'Staged' || report === 'Serving');
}

/** Whether a replica is connected and could not load the revision. */
export function isFailedOn({ state, revisions }: ReplicaFacts, { number }: RevisionFacts): boolean {
  return state === 'connected' && revisions.get(number)?.state === 'Failed';
}

/**
 * Whether nothing can serve, so that the failurePolicy should answer: the desired revision failed, does not exist, or
 * no replica could load it. A new policy on its way for the first time is not covered yet.
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

/**
 * Whether degraded policies are ignored, and nothing can serve: no connected replica can load what serves, or there is no replica that
 * gets requests. The policy is not enforced until one can again. Replicas that are lost, and may get requests, do not change it.
 */
export function isServingIgnored(view: RolloutView): boolean {
  const serving = servingRevision(view);
  const connected = (view.replicas ?? []).filter(({ state }) => state === 'connected');
  if (serving === undefined || view.settings.degraded !== 'Ignore') {
    return false;
  }
  const isServed = connected.some((replica) => view.revisions.some((one) => isServingOn(replica, one)));
  const isLoadable = isServed || connected.some((replica) => isLoadedOn(replica, serving));
  const isUnloadable = connected.length > 0 && connected.every((replica) => isFailedOn(replica, serving));
  const isNothingThere = view.replicas?.every(({ isUnready }) => isUnready === true) === true;
  return !isLoadable && (isUnloadable || isNothingThere || !serving.isEnforced);
}

/**
 * Whether a revision of the policy ever served. Durable, because {@link lastServedRevision} is deleted with its policy only.
 */
export function hasServed(view: Revisions): boolean {
  return lastServedRevision(view) !== undefined;
}

/** Whether the failurePolicy answers while nothing can serve; otherwise the policy is not enforced. */
export function isFailurePolicyInForce(view: Pick<RolloutView, 'revisions' | 'settings'>): boolean {
  if (view.settings.disarmed !== undefined) {
    return false;
  }
  return hasServed(view) ? view.settings.degraded !== 'Ignore' : view.settings.unserved === 'Reject';
}

function latest<Spec>(revisions: readonly RevisionFacts<Spec>[]): RevisionFacts<Spec> | undefined {
  return revisions.reduce<RevisionFacts<Spec> | undefined>(
    (last, one) => (last === undefined || servesInsteadOf(one, last) ? one : last),
    undefined,
  );
}
