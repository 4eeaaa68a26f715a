// What there is to do about one policy, from what is known of it. Pure: the same view gives the same plan.
import { isDeepStrictEqual } from 'node:util';
import { rollbackOf } from './pinned-spec.ts';
import { REASONS } from './reasons.ts';
import { desiredRevision, hasFailed, servingRevision } from './revision-choice.ts';
import type { RevisionFacts, RolloutPlan, RolloutStep, RolloutView } from './rollout-view.ts';

/** States from which a revision goes on towards serving. */
const UNDER_WAY: ReadonlySet<RevisionFacts['state']> = new Set(['Candidate', 'Validated', 'Staged']);
const STAGED: ReadonlySet<RevisionFacts['state']> = new Set(['Validated', 'Staged']);
/** States that only history is left of. */
const PAST: ReadonlySet<RevisionFacts['state']> = new Set(['Retired', 'Failed', 'Superseded']);

/** Plans one policy. A world that is as it should be has no steps but an `enforce` that finds nothing to write. */
export function planRollout(view: RolloutView): RolloutPlan {
  const newest = view.revisions.at(-1);
  if (newest === undefined || !isDeepStrictEqual(newest.snapshot, view.spec)) {
    const revision = (newest?.number ?? 0) + 1;
    const rollback = rollbackOf(view.spec, view.revisions);
    return { steps: [{ type: 'create', revision, rollbackOf: rollback }], wakeAt: undefined };
  }
  const desired = desiredRevision(view);
  const steps = [
    ...overtaken(view, desired),
    ...(desired === undefined ? [] : towards(view, desired)),
    ...enforcement(view, desired),
    ...retirement(view, desired),
    ...pruning(view, desired),
  ];
  return { steps, wakeAt: wakeAt(view, desired) };
}

/** Revisions that were under way and are not wanted any more. The newest one waits for the end of a pin. */
function overtaken(view: RolloutView, desired: RevisionFacts | undefined): RolloutStep[] {
  const newest = view.revisions.at(-1);
  return view.revisions.flatMap((revision): RolloutStep[] => {
    if (revision === desired || !UNDER_WAY.has(revision.state)) {
      return [];
    }
    if (revision !== newest) {
      const message = `revision ${newest?.number ?? 0} came before it served`;
      return [transition(revision, 'Superseded', REASONS.superseded, message)];
    }
    const isHeld = revision.state === 'Candidate' && revision.reason === REASONS.pinned;
    return isHeld ? [] : [transition(revision, 'Candidate', REASONS.pinned, `the policy is pinned to ${view.pin}`)];
  });
}

function towards(view: RolloutView, desired: RevisionFacts): RolloutStep[] {
  const serving = servingRevision(view);
  switch (desired.state) {
    case 'Candidate': {
      const isDue = desired.nextRetry === undefined || desired.nextRetry <= view.now;
      return isDue && isConnected(view) ? [{ type: 'prevalidate', revision: desired.number }] : [];
    }
    case 'Retired':
    case 'Superseded':
      return [transition(desired, desired.modules.length > 0 ? 'Validated' : 'Candidate', '', '')];
    case 'Validated':
    case 'Staged': {
      const others = serving === undefined ? [] : [serving.number];
      const widen: RolloutStep[] =
        others.length === 0 ? [] : [{ type: 'widen', revisions: [...others, desired.number] }];
      return mayServe(view, desired) ? [...widen, toServe(view, desired)] : [];
    }
    case 'Serving':
      // A pin goes back to one that was about to be retired.
      return desired === serving ? [] : [toServe(view, desired)];
    case 'Failed':
      return [];
    default:
      return desired.state satisfies never;
  }
}

/** Whether all replicas have the revision; or, when it took too long, whether the strategy does without some. */
export function mayServe({ replicas = [], settings, now }: RolloutView, revision: RevisionFacts): boolean {
  const have = replicas.filter(({ state, revisions }) => {
    const report = revisions.get(revision.number)?.state;
    return state === 'connected' && (report === 'Staged' || report === 'Serving');
  });
  if (have.length === 0) {
    return false;
  }
  const isLate = now >= revision.stateSince + settings.progressDeadlineMs;
  return have.length === replicas.length || (isLate && settings.strategy === 'Available');
}

/** Whether every replica that answers serves the revision, or had long enough to. */
function servesEverywhere({ replicas, settings, now }: RolloutView, { number, stateSince }: RevisionFacts): boolean {
  if (replicas === undefined) {
    return false;
  }
  const connected = replicas.filter(({ state }) => state === 'connected');
  const isLate = now >= stateSince + settings.progressDeadlineMs;
  return (
    isLate || (connected.length > 0 && connected.every(({ revisions }) => revisions.get(number)?.state === 'Serving'))
  );
}

/** What the API server is to ask about. */
function enforcement(view: RolloutView, desired: RevisionFacts | undefined): RolloutStep[] {
  const serving = servingRevision(view);
  if (serving === undefined) {
    const isLost = desired !== undefined && hasFailed(desired, REASONS.pinned);
    return isLost ? [{ type: 'enforce', revision: undefined }] : [];
  }
  if (desired !== undefined && STAGED.has(desired.state) && mayServe(view, desired)) {
    // It is about to serve, and asked for already.
    return [];
  }
  // A new policy answers before it is asked; what another one asked beyond it is asked until all have changed over.
  return servesEverywhere(view, serving) || desired !== serving ? [{ type: 'enforce', revision: serving.number }] : [];
}

function retirement(view: RolloutView, desired: RevisionFacts | undefined): RolloutStep[] {
  const serving = servingRevision(view);
  const steps = view.revisions
    .filter((revision) => revision.state === 'Serving' && revision !== serving && revision !== desired)
    .map((revision) => transition(revision, 'Retired', REASONS.replaced, `revision ${serving?.number ?? 0} serves`));
  if (serving !== undefined && desired?.state === 'Failed' && view.settings.degraded === 'Reject') {
    steps.push(transition(serving, 'Retired', REASONS.degradedRejected, `revision ${desired.number} failed`));
  }
  return steps;
}

function pruning(view: RolloutView, desired: RevisionFacts | undefined): RolloutStep[] {
  const newest = view.revisions.at(-1);
  const past = view.revisions.filter(
    (revision) => PAST.has(revision.state) && revision !== desired && revision !== newest,
  );
  const revisions = past.slice(0, Math.max(0, past.length - view.settings.historyLimit)).map(({ number }) => number);
  return revisions.length === 0 ? [] : [{ type: 'delete', revisions }];
}

function wakeAt({ now, settings }: RolloutView, desired: RevisionFacts | undefined): number | undefined {
  if (desired === undefined) {
    return undefined;
  }
  const at = desired.state === 'Candidate' ? desired.nextRetry : desired.stateSince + settings.progressDeadlineMs;
  return at !== undefined && at > now && !PAST.has(desired.state) ? at : undefined;
}

function isConnected({ replicas = [] }: RolloutView): boolean {
  return replicas.some(({ state }) => state === 'connected');
}

function toServe({ revisions }: RolloutView, revision: RevisionFacts): RolloutStep {
  const order = Math.max(...revisions.map((one) => one.order)) + 1;
  return { ...transition(revision, 'Serving', '', ''), order };
}

function transition(
  { number: revision }: RevisionFacts,
  to: RevisionFacts['state'],
  reason: string,
  message: string,
): RolloutStep & { readonly type: 'transition' } {
  return { type: 'transition', revision, to, reason, message };
}
