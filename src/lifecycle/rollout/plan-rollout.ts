// What there is to do about one policy, from what is known of it. Pure: the same view gives the same plan.
import { rollbackOf } from './pinned-spec.ts';
import { REASONS } from './reasons.ts';
import {
  deadlineOf,
  desiredRevision,
  goalRevision,
  hasSpec,
  isAnsweredBy,
  isDeclared,
  isFailedOn,
  isLoadedBy,
  isServedBy,
  isStaging,
  isUnservable,
  lastGoodRevision,
  servingRevision,
} from './revision-choice.ts';
import type { RevisionFacts, RolloutPlan, RolloutStep, RolloutView } from './rollout-view.ts';

/** States from which a revision goes on towards serving. */
const UNDER_WAY: ReadonlySet<RevisionFacts['state']> = new Set(['Candidate', 'Validated', 'Staged']);
/** States that only history is left of. */
const PAST: ReadonlySet<RevisionFacts['state']> = new Set(['Retired', 'Failed', 'Superseded']);
/** Phases that promise that one revision serves everywhere. */
const AT_REST: ReadonlySet<RolloutView['phase']> = new Set(['Active', 'RolledBack']);

/**
 * Plans one policy. The first step that has something to write is done, then the world is looked at anew. One that is as it
 * should be has no steps but an `enforce` that finds nothing to write.
 */
export function planRollout(view: RolloutView): RolloutPlan {
  if (!isDeclared(view)) {
    const revision = (view.revisions.at(-1)?.number ?? 0) + 1;
    const rollback = hasSpec(view) ? undefined : rollbackOf(view.spec, view.revisions);
    const { ownWebhook } = view;
    return { steps: [{ type: 'create', revision, rollbackOf: rollback, ownWebhook }], wakeAt: undefined };
  }
  const goal = goalRevision(view);
  const steps = [
    ...overtaken(view, goal),
    ...retirement(view, goal),
    ...(goal === undefined ? [] : towards(view, goal)),
    ...enforcement(view, goal),
    ...pruning(view, goal),
  ];
  return { steps, wakeAt: wakeAt(view, goal) };
}

/** Revisions that were under way and are not wanted any more. The newest one waits for the end of a pin. */
function overtaken(view: RolloutView, goal: RevisionFacts | undefined): RolloutStep[] {
  const newest = view.revisions.at(-1);
  const wanted = new Set([goal, desiredRevision(view)]);
  return view.revisions.flatMap((revision): RolloutStep[] => {
    if (wanted.has(revision) || !UNDER_WAY.has(revision.state)) {
      return [];
    }
    if (revision.order > 0) {
      return [transition(revision, 'Retired', REASONS.replaced, 'another revision is desired again')];
    }
    if (revision !== newest) {
      const message = `revision ${newest?.number ?? 0} came before it served`;
      return [transition(revision, 'Superseded', REASONS.superseded, message)];
    }
    const isHeld = revision.state === 'Candidate' && revision.reason === REASONS.pinned;
    const message = `the policy is pinned to revision ${view.pin}`;
    return isHeld ? [] : [transition(revision, 'Candidate', REASONS.pinned, message)];
  });
}

/** All but one of those that read Serving: a leader may have ended between two writes. */
function retirement(view: RolloutView, goal: RevisionFacts | undefined): RolloutStep[] {
  const serving = servingRevision(view);
  return view.revisions.flatMap((revision): RolloutStep[] => {
    if (revision.state !== 'Serving') {
      return [];
    }
    if (revision !== serving) {
      return [transition(revision, 'Retired', REASONS.replaced, `revision ${serving?.number ?? 0} serves`)];
    }
    const message = `revision ${desiredRevision(view)?.number ?? 0} failed, and degraded policies reject`;
    return goal === undefined ? [transition(revision, 'Retired', REASONS.degradedRejected, message)] : [];
  });
}

function towards(view: RolloutView, goal: RevisionFacts): RolloutStep[] {
  switch (goal.state) {
    case 'Candidate': {
      const isDue = goal.nextRetry === undefined || goal.nextRetry <= view.now;
      return isDue && isConnected(view) ? [{ type: 'prevalidate', revision: goal.number }] : [];
    }
    case 'Retired':
    case 'Superseded':
      return [transition(goal, goal.modules.length > 0 ? 'Validated' : 'Candidate', '', '')];
    case 'Validated':
    case 'Staged':
      return [...foresight(view, goal), ...(mayServe(view, goal) && isTold(view) ? flip(view, goal) : [])];
    case 'Serving':
    case 'Failed':
      return [];
    default:
      return goal.state satisfies never;
  }
}

/** While nobody answers, what never served is better not asked about. */
function foresight(view: RolloutView, { number: revision }: RevisionFacts): RolloutStep[] {
  return isConnected(view) ? [{ type: 'foresee', revision }] : [];
}

/** Whether all replicas have the revision; or, when it took too long, whether the strategy does without some. */
function mayServe(view: RolloutView, revision: RevisionFacts): boolean {
  const { replicas = [], settings, now } = view;
  const count = replicas.filter((replica) => isLoadedBy(replica, revision)).length;
  const isLate = now >= deadlineOf(view, revision);
  return count > 0 && (count === replicas.length || (isLate && settings.strategy === 'Available'));
}

/** Whether users read that verdicts may mix: what they read is written after the steps of a plan, so the next one flips. */
function isTold({ phase }: RolloutView): boolean {
  return !AT_REST.has(phase);
}

function flip(view: RolloutView, revision: RevisionFacts): RolloutStep[] {
  const serving = servingRevision(view);
  const order = Math.max(...view.revisions.map((one) => one.order)) + 1;
  return [
    ...(serving === undefined ? [] : [{ type: 'widen', revisions: [serving.number, revision.number] } as const]),
    { ...transition(revision, 'Serving', '', ''), order },
  ];
}

/** What the API server is to ask about. */
function enforcement(view: RolloutView, goal: RevisionFacts | undefined): RolloutStep[] {
  const serving = servingRevision(view);
  if (serving === undefined) {
    return isUnservable(view, desiredRevision(view)) ? [{ type: 'enforce', revision: undefined }] : [];
  }
  const isAboutToFlip = goal !== undefined && isStaging(goal) && mayServe(view, goal);
  // A new policy answers before it is asked; what another one asked beyond it is asked until all have changed over.
  return !isAboutToFlip && hasChangedOver(view, serving) ? [{ type: 'enforce', revision: serving.number }] : [];
}

/** Whether every replica that answers serves the revision, cannot, or had long enough to. */
function hasChangedOver(view: RolloutView, serving: RevisionFacts): boolean {
  const { replicas, now } = view;
  if (replicas === undefined) {
    return false;
  }
  const connected = replicas.filter(({ state }) => state === 'connected');
  const isDone = connected.every((replica) => isServedBy(replica, serving) || isFailedOn(replica, serving));
  return now >= deadlineOf(view, serving) || (isDone && connected.some((replica) => isServedBy(replica, serving)));
}

/** Those that are past, beyond the limit: never what serves somewhere, is wanted, or is there to fall back on. */
function pruning(view: RolloutView, goal: RevisionFacts | undefined): RolloutStep[] {
  const { replicas, revisions, settings } = view;
  if (replicas === undefined) {
    return [];
  }
  const kept = new Set([goal, desiredRevision(view), lastGoodRevision(view), revisions.at(-1)]);
  const past = revisions.filter(({ state }) => PAST.has(state));
  // Many attempts that never served do not push out what there is to go back to.
  const byWorth = [...past.filter(({ order }) => order === 0), ...past.filter(({ order }) => order > 0)];
  const numbers = byWorth
    .slice(0, Math.max(0, past.length - settings.historyLimit))
    .filter((revision) => !kept.has(revision) && !replicas.some((replica) => isAnsweredBy(replica, revision)))
    .map(({ number }) => number);
  return numbers.length === 0 ? [] : [{ type: 'delete', revisions: numbers }];
}

function wakeAt(view: RolloutView, goal: RevisionFacts | undefined): number | undefined {
  const { now } = view;
  const serving = servingRevision(view);
  if (goal !== undefined && isStaging(goal) && mayServe(view, goal) && !isTold(view)) {
    return now;
  }
  const isServedEverywhere =
    serving === undefined || (view.replicas?.every((replica) => isServedBy(replica, serving)) ?? false);
  const times = [
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
