// Plans the rollout of one policy. Pure: a view determines the plan.
import { REASONS } from './reasons.ts';
import {
  deadlineOf,
  evaluatesAs,
  desiredRevision,
  goalRevision,
  cannotServe,
  handledRefresh,
  hasOtherParameters,
  hasServed,
  hasSpec,
  isServingIgnored,
  isServingOn,
  isDeclared,
  isFailedOn,
  isFailurePolicyInForce,
  rollbackOf,
  isLoadedOn,
  isSwitchedTo,
  isStaging,
  isUnservable,
  lastGoodRevision,
  lastServedRevision,
  servingRevision,
  validatedBase,
} from './revision-choice.ts';
import type { ReplicaFacts, RevisionFacts, RolloutPlan, RolloutStep, RolloutView } from './rollout-view.ts';

/** States of a revision on its way to serving. */
const ON_THE_WAY: ReadonlySet<RevisionFacts['state']> = new Set(['Candidate', 'Validated', 'Staged']);
/** States of revisions that remain only as history. */
const PAST: ReadonlySet<RevisionFacts['state']> = new Set(['Retired', 'Failed', 'Superseded']);
/** Phases in which every replica serves the same revision. */
const AT_REST: ReadonlySet<RolloutView['phase']> = new Set(['Active', 'RolledBack']);

/**
 * The plan of one policy. The caller executes the first step that has something to write, and then plans again with the
 * new state. The plan of a settled policy is one `enforce`, which finds nothing to write.
 */
export function planRollout(view: RolloutView): RolloutPlan {
  const refreshing = refreshStep(view);
  if (!isDeclared(view) || refreshing?.type === 'create') {
    return { steps: [creation(view)], wakeAt: undefined };
  }
  const disarmed = rearmedRevision(view);
  if (disarmed !== undefined) {
    return { steps: [startServing(view, disarmed)], wakeAt: undefined };
  }
  const goal = goalRevision(view);
  const steps = [
    ...superseded(view, goal),
    ...enforcement(view, goal),
    ...retirement(view, goal),
    ...(goal === undefined ? [] : progress(view, goal)),
    ...anotherTry(view),
    ...coverage(view, goal),
    ...pruning(view, goal),
  ];
  // Each policy has one pre-validation at a time.
  const mayRefresh = refreshing !== undefined && !steps.some(({ type }) => type === 'prevalidate');
  return { steps: mayRefresh ? [refreshing, ...steps] : steps, wakeAt: wakeAt(view, goal) };
}

/** The next revision of the policy, with its spec and annotations. */
export function creation(view: RolloutView): RolloutStep & { readonly type: 'create' } {
  const { ownWebhook, revisions, spec } = view;
  const base = hasSpec(view) ? undefined : validatedBase(view);
  // A refresh under way does not delay a change that needs no modules. It goes on afterwards.
  const refresh = base !== undefined && view.rules.evaluates(spec, base) ? handledRefresh(base) : view.refresh;
  const rollback = hasSpec(view) ? undefined : rollbackOf(spec, revisions);
  return {
    type: 'create',
    revision: (revisions.at(-1)?.number ?? 0) + 1,
    rollbackOf: rollback,
    ownWebhook,
    refresh,
  };
}

/** Handles a change of the annotation `refresh`. A revision that is about to resolve its modules need not do so twice. */
function refreshStep(view: RolloutView): RolloutStep | undefined {
  const { refresh } = view;
  const newest = view.revisions.at(-1);
  if (refresh === undefined || newest === undefined || handledRefresh(newest) === refresh) {
    return undefined;
  }
  if (cannotServe(newest)) {
    return creation(view);
  }
  const isInherited = isStaging(newest) && newest.reason === REASONS.inherited;
  return newest.state === 'Candidate' || isInherited || !isConnected(view)
    ? undefined
    : { type: 'refresh', revision: newest.number, refresh };
}

/**
 * Ends revisions that are no longer wanted on their way to serving. If a pin is the reason, the newest one waits for
 * its end.
 */
function superseded(view: RolloutView, goal: RevisionFacts | undefined): RolloutStep[] {
  const newest = view.revisions.at(-1);
  const wanted = new Set([goal, desiredRevision(view)]);
  return view.revisions.flatMap((revision): RolloutStep[] => {
    if (wanted.has(revision) || !ON_THE_WAY.has(revision.state)) {
      return [];
    }
    if (revision.order > 0) {
      return [transition(revision, 'Retired', REASONS.replaced, 'another revision is desired again')];
    }
    if (revision !== newest) {
      const message = `superseded by revision ${newest?.number ?? 0} before it served`;
      return [transition(revision, 'Superseded', REASONS.superseded, message)];
    }
    const isWaiting = revision.state === 'Candidate' && revision.reason === REASONS.pinned;
    const message = `the policy is pinned to revision ${view.pin}`;
    return isWaiting ? [] : [transition(revision, 'Candidate', REASONS.pinned, message)];
  });
}

/** Retires all serving revisions but one: a leader may have stopped between two writes. */
function retirement(view: RolloutView, goal: RevisionFacts | undefined): RolloutStep[] {
  const serving = servingRevision(view);
  return view.revisions.flatMap((revision): RolloutStep[] => {
    if (revision.state !== 'Serving') {
      return [];
    }
    if (revision !== serving) {
      return [transition(revision, 'Retired', REASONS.replaced, `revision ${serving?.number ?? 0} serves`)];
    }
    if (goal !== undefined) {
      return [];
    }
    const { disarmed } = view.settings;
    if (disarmed !== undefined) {
      return [transition(revision, 'Retired', REASONS.disarmed, `the policy is disarmed: ${disarmed}`)];
    }
    const isIgnored = view.settings.degraded === 'Ignore';
    const reason = isIgnored ? REASONS.degradedIgnored : REASONS.degradedRejected;
    const what = isIgnored ? 'ignore' : 'reject';
    const message = `revision ${desiredRevision(view)?.number ?? 0} failed, and --degraded-policies=${what} ends the enforcement of what served before`;
    return [transition(revision, 'Retired', reason, message)];
  });
}

/** What the policy was disarmed with, once it is armed again. It serves at once, loaded or not: a newer one may never do so. */
function rearmedRevision(view: RolloutView): RevisionFacts | undefined {
  const last = lastServedRevision(view);
  const wasDisarmed = last?.state === 'Retired' && last.reason === REASONS.disarmed;
  const isServing = servingRevision(view) !== undefined;
  return wasDisarmed && !isServing && view.settings.disarmed === undefined ? last : undefined;
}

function progress(view: RolloutView, goal: RevisionFacts): RolloutStep[] {
  switch (goal.state) {
    case 'Candidate': {
      const base = validatedBase(view);
      if (base !== undefined && evaluatesAs(view, goal, base)) {
        return [{ type: 'inherit', revision: goal.number, from: base.number }];
      }
      return isDue(view, goal) && isConnected(view) ? [{ type: 'prevalidate', revision: goal.number }] : [];
    }
    case 'Retired':
    case 'Superseded':
      return [transition(goal, goal.modules.length > 0 ? 'Validated' : 'Candidate', '', '')];
    case 'Validated':
    case 'Staged':
      return [...dryRun(view, goal), ...(mayServe(view, goal) && isPublished(view) ? switchOver(view, goal) : [])];
    case 'Serving':
    case 'Failed':
      return [];
    default:
      return goal.state satisfies never;
  }
}

/** Tries the desired revision again when the parameters change for which it failed. */
function anotherTry(view: RolloutView): RolloutStep[] {
  const desired = desiredRevision(view);
  return desired !== undefined && hasOtherParameters(view, desired) && isDue(view, desired)
    ? [{ type: 'prevalidate', revision: desired.number }]
    : [];
}

function isDue({ now }: RolloutView, { nextRetry }: RevisionFacts): boolean {
  return nextRetry === undefined || nextRetry <= now;
}

/**
 * Prepares the coverage of a new revision; not without a connected replica, which could only answer by the failurePolicy, and
 * not while nothing can serve a policy that is not enforced.
 */
function dryRun(view: RolloutView, goal: RevisionFacts): RolloutStep[] {
  const isHopeless = isUnservable(view, goal) && !isFailurePolicyInForce(view) && !mayServe(view, goal);
  return isConnected(view) && !isHopeless ? [{ type: 'dryRun', revision: goal.number }] : [];
}

/**
 * Whether all replicas have loaded the revision; or some, after the deadline, if the strategy allows it. A revision that
 * evaluates as the one before serves where nothing could be lost, loaded or not: its failurePolicy is what answers then.
 */
function mayServe(view: RolloutView, revision: RevisionFacts): boolean {
  const { replicas = [], settings, now } = view;
  const base = validatedBase(view);
  if (view.replicas !== undefined && base !== undefined && evaluatesAs(view, revision, base)) {
    const connected = replicas.filter(({ state }) => state === 'connected');
    return connected.every((replica) => isLoadedOn(replica, revision) || !isServingAny(view, replica));
  }
  const count = replicas.filter((replica) => isLoadedOn(replica, revision)).length;
  const isLate = now >= deadlineOf(view, revision);
  return count > 0 && (count === replicas.length || (isLate && settings.strategy === 'Available'));
}

/**
 * Whether the published phase says that verdicts may mix. The status is written after the steps of a plan, so the next
 * plan switches.
 */
function isPublished({ phase }: RolloutView): boolean {
  return !AT_REST.has(phase);
}

function isServingAny({ revisions }: RolloutView, replica: ReplicaFacts): boolean {
  return revisions.some((revision) => isServingOn(replica, revision));
}

function switchOver(view: RolloutView, revision: RevisionFacts): RolloutStep[] {
  const served = view.revisions.filter((one) => one !== revision && mayAnswer(view, one)).map(({ number }) => number);
  return [
    ...(served.length === 0 ? [] : [{ type: 'widen', revisions: [...served, revision.number] } as const]),
    startServing(view, revision),
  ];
}

function startServing({ revisions }: RolloutView, revision: RevisionFacts): RolloutStep {
  const order = Math.max(...revisions.map((one) => one.order)) + 1;
  return { ...transition(revision, 'Serving', ...inheritance(revision)), order };
}

/** What a revision says about its modules also while it serves. */
function inheritance({ reason, message }: RevisionFacts): readonly [reason: string, message: string] {
  return reason === REASONS.inherited ? [reason, message] : ['', ''];
}

/** Whether a replica may answer by the revision: it serves, or a replica has not switched from it yet. */
function mayAnswer({ replicas = [], ...view }: RolloutView, revision: RevisionFacts): boolean {
  return revision === servingRevision(view) || replicas.some((replica) => isServingOn(replica, revision));
}

/**
 * Corrects `isEnforced` of the serving revision where no replica can load it, of the newest revision after a change of
 * settings or of the serving revision, and of a first one that no replica can load. This happens before the
 * serving revision is retired, so that replicas know the answer by then.
 */
function enforcement(view: RolloutView, goal: RevisionFacts | undefined): RolloutStep[] {
  const serving = servingRevision(view);
  if (serving !== undefined && serving.isEnforced === isServingIgnored(view)) {
    return [{ type: 'setEnforced', revision: serving.number, isEnforced: !serving.isEnforced }];
  }
  const newest = view.revisions.at(-1);
  const isUnserved = serving === undefined || goal === undefined;
  if (newest === undefined || !isUnserved) {
    return [];
  }
  const isFirst = isStaging(newest) && !hasServed(view);
  // Stays so while replicas try again.
  const isDue = !isFirst || newest.isEnforced || isUnservable(view, newest);
  const isEnforced = isDue && isFailurePolicyInForce(view);
  return (cannotServe(newest) || isFirst) && newest.isEnforced !== isEnforced
    ? [{ type: 'setEnforced', revision: newest.number, isEnforced }]
    : [];
}

/** Sets the coverage of the policy. */
function coverage(view: RolloutView, goal: RevisionFacts | undefined): RolloutStep[] {
  const serving = servingRevision(view);
  if (view.settings.disarmed !== undefined) {
    return [{ type: 'uncover' }];
  }
  if (serving === undefined) {
    // What has served stays covered while its successor is on its way, also by a new leader.
    const mustStay = hasServed(view) && isFailurePolicyInForce(view);
    if (!mustStay && !isUnservable(view, desiredRevision(view))) {
      return [];
    }
    // The requests of what served last: a revision that never served applies to none.
    return isFailurePolicyInForce(view)
      ? [{ type: 'enforce', revision: lastServedRevision(view)?.number }]
      : [{ type: 'uncover' }];
  }
  if (isServingIgnored(view)) {
    return [{ type: 'uncover' }];
  }
  const isAboutToSwitch = goal !== undefined && isStaging(goal) && mayServe(view, goal);
  // A new policy serves before it is covered. After a switch, requests of the previous revision stay covered until all
  // replicas have switched.
  return !isAboutToSwitch && hasSwitched(view, serving) ? [{ type: 'enforce', revision: serving.number }] : [];
}

/** Whether every connected replica, of which there is one, serves the revision or cannot load it; or the deadline has passed. */
function hasSwitched(view: RolloutView, serving: RevisionFacts): boolean {
  const { replicas, now } = view;
  if (replicas === undefined) {
    return false;
  }
  const connected = replicas.filter(({ state }) => state === 'connected');
  if (isLoosened(view, serving)) {
    // Requests stay the same, and replicas that are not connected need not reject any.
    return connected.every((replica) => isSwitchedTo(replica, serving) || !isServingAny(view, replica));
  }
  const isDone = connected.every((replica) => isSwitchedTo(replica, serving) || isFailedOn(replica, serving));
  return now >= deadlineOf(view, serving) || (isDone && connected.length > 0);
}

/** Whether the revision only admits what the one before it may reject while nothing can be loaded. */
function isLoosened(view: RolloutView, serving: RevisionFacts): boolean {
  const before = lastServedRevision({ revisions: view.revisions.filter((one) => one !== serving) });
  return before !== undefined && view.rules.admitsFailures(serving.snapshot) && evaluatesAs(view, serving, before);
}

/** Deletes past revisions beyond the history limit, except those that serve, are wanted, or are the last good one. */
function pruning(view: RolloutView, goal: RevisionFacts | undefined): RolloutStep[] {
  const { replicas, revisions, settings } = view;
  if (replicas === undefined) {
    return [];
  }
  const kept = new Set([
    goal,
    desiredRevision(view),
    lastGoodRevision(view),
    lastServedRevision(view),
    revisions.at(-1),
  ]);
  const past = revisions.filter(({ state }) => PAST.has(state));
  // Revisions that never served go first, so that failed attempts do not displace rollback targets.
  const inOrder = [...past.filter(({ order }) => order === 0), ...past.filter(({ order }) => order > 0)];
  const numbers = inOrder
    .slice(0, Math.max(0, past.length - settings.historyLimit))
    .filter((revision) => !kept.has(revision) && !replicas.some((replica) => isServingOn(replica, revision)))
    .map(({ number }) => number);
  return numbers.length === 0 ? [] : [{ type: 'delete', revisions: numbers }];
}

function wakeAt(view: RolloutView, goal: RevisionFacts | undefined): number | undefined {
  const { now } = view;
  const serving = servingRevision(view);
  if (goal !== undefined && isStaging(goal) && mayServe(view, goal) && !isPublished(view)) {
    return now;
  }
  const isServedEverywhere =
    serving === undefined || (view.replicas?.every((replica) => isSwitchedTo(replica, serving)) ?? false);
  const desired = desiredRevision(view);
  const times = [
    desired !== undefined && hasOtherParameters(view, desired) ? desired.nextRetry : undefined,
    goal?.state === 'Candidate' ? goal.nextRetry : undefined,
    goal !== undefined && isStaging(goal) ? deadlineOf(view, goal) : undefined,
    isServedEverywhere ? undefined : deadlineOf(view, serving),
  ]
    .filter((time) => time !== undefined)
    .filter((time) => time > now);
  return times.length === 0 ? undefined : Math.min(...times);
}

function isConnected({ replicas = [] }: RolloutView): boolean {
  return replicas.some(({ state }) => state === 'connected');
}

function transition(
  { number: revision }: RevisionFacts,
  to: RevisionFacts['state'],
  reason: string,
  message: string,
): RolloutStep & { readonly type: 'transition' } {
  return { type: 'transition', revision, to, reason, message };
}
