// The moves of controllers: updating a cache, or the first write of a plan.
import { afterPrevalidation, isFailurePolicyInForce, REASONS, type RolloutStep } from '../../../rollout/index.ts';
import { admissionPolicyStatus } from '../admission-policy-status.ts';
import { viewOf } from './believed-view.ts';
import {
  type Belief,
  type Budget,
  isSame,
  type Move,
  NOW,
  type Revision,
  type Rules,
  SPECS,
  notified,
  type World,
} from './rollout-world.ts';

/** A controller updates a cache or executes one step. A former leader may finish its last step. */
export function controllerMoves(world: World, index: number, rules: Rules): Move[] {
  const belief = world.controllers[index];
  if (belief === undefined) {
    return [];
  }
  const { policy, revisions, covered, replicas } = world;
  const news: (readonly [string, Partial<Belief>])[] = rules.hasSeparateCaches
    ? [
        ['policy', { policy }],
        ['revisions', { revisions, covered }],
        ['replicas', { replicas }],
      ]
    : [['all', { policy, revisions, covered, replicas }]];
  const updates = news.map(([what, part]) => ({
    name: `controller ${index} reads ${what}`,
    world: updateCache(world, index, part),
  }));
  if (belief.isFormer !== true) {
    return [...updates, ...act(world, index, rules)];
  }
  return act(world, index, rules).map((move) => ({ ...move, world: without(move.world, index) }));
}

function without(world: World, index: number): World {
  return { ...world, controllers: world.controllers.toSpliced(index, 1) };
}

function updateCache(world: World, index: number, part: Partial<Belief>): World {
  const controllers = world.controllers.map((belief, at) => (at === index ? { ...belief, ...part } : belief));
  return { ...world, controllers };
}

/**
 * The first step of the plan that writes something, else the status. A pre-validation may end now, or be still running.
 */
export function act(world: World, index: number, rules: Rules): Move[] {
  const belief = world.controllers[index];
  if (belief === undefined) {
    return [];
  }
  const view = viewOf(belief, rules);
  const done: Move[] = [];
  for (const step of rules.plan(view).steps) {
    const outcomes = execute(world, index, belief, step, rules);
    done.push(...outcomes.map((next) => ({ name: `controller ${index}: ${JSON.stringify(step)}`, world: next })));
    if (outcomes.length > 0 && step.type !== 'prevalidate' && step.type !== 'refresh') {
      return done;
    }
  }
  const { conditions: _, message: __, ...status } = admissionPolicyStatus(view, undefined, belief.policy.status, NOW);
  if (JSON.stringify(status) !== JSON.stringify(belief.policy.status)) {
    const policy = { ...world.policy, status };
    const next = isSame(belief.policy, world.policy)
      ? updateCache({ ...world, policy }, index, { policy })
      : updateCache(world, index, { policy: world.policy });
    done.push({ name: `controller  writes ${status.phase} ${status.reason}`, world: next });
  }
  return done;
}

/** Possible results of a step; none if there is nothing to write. */
function execute(world: World, index: number, belief: Belief, step: RolloutStep, rules: Rules): World[] {
  switch (step.type) {
    case 'create':
      return create(world, index, belief, step.revision);
    case 'refresh':
      return refresh(world, index, belief, step.revision, rules);
    case 'prevalidate': {
      const revision = belief.revisions.find(({ n }) => n === step.revision);
      const outcomes = revision === undefined ? [] : results(world, revision, rules);
      return outcomes.map(({ budget, change }) =>
        write({ ...world, budget }, index, belief, step.revision, withEnforced(change, belief, rules)),
      );
    }
    case 'inherit': {
      const from = belief.revisions.find(({ n }) => n === step.from);
      const change = { state: 'Validated', reason: REASONS.inherited, isPinned: true, tag: from?.tag ?? 0 } as const;
      return [write(world, index, belief, step.revision, change)];
    }
    case 'transition': {
      const order = step.order === undefined ? {} : { order: step.order };
      const change = { state: step.to, reason: step.reason, ...order };
      return [write(world, index, belief, step.revision, withEnforced(change, belief, rules))];
    }
    case 'setEnforced':
      return [write(world, index, belief, step.revision, { isEnforced: step.isEnforced })];
    case 'uncover':
      return belief.covered === '' ? [] : [cover(world, index, belief, '')];
    case 'dryRun':
      // A dry run writes nothing, and nothing depends on prepared coverage.
      return [];
    case 'widen':
    case 'enforce': {
      const numbers = step.type === 'widen' ? step.revisions : [step.revision];
      const specs = numbers.map((n) => belief.revisions.find((one) => one.n === n)?.spec ?? belief.policy.spec);
      const covered = SPECS.filter((spec) => specs.includes(spec)).join('');
      return covered === belief.covered ? [] : [cover(world, index, belief, covered)];
    }
    case 'delete': {
      const [n] = step.revisions;
      return n === undefined ? [] : [write(world, index, belief, n, undefined)];
    }
    default:
      return step satisfies never;
  }
}

/** The write of a failure says whether the failurePolicy answers. */
function withEnforced(change: Partial<Revision>, belief: Belief, rules: Rules): Partial<Revision> {
  const isFailure = change.state === 'Failed' || (change.state === 'Candidate' && change.reason !== '');
  const isFirst = belief.revisions.every(({ order }) => order === 0);
  const isOnTheWay = isFirst && (change.state === 'Validated' || change.state === 'Staged');
  const isEnforced = isFailure ? isFailurePolicyInForce(viewOf(belief, rules)) : !isOnTheWay;
  return { ...change, isEnforced };
}

function create(world: World, index: number, belief: Belief, n: number): World[] {
  if (world.revisions.some((one) => one.n === n)) {
    return [conflict(world, index)];
  }
  const { spec, refresh: wanted } = belief.policy;
  const fields = {
    state: 'Candidate',
    reason: '',
    order: 0,
    isPinned: false,
    tag: 0,
    refresh: wanted,
    refreshed: 0,
    attempts: 0,
    retries: false,
    late: false,
    isEnforced: true,
  } as const;
  const created: Revision = { n, spec, ...fields };
  const added = { ...world, revisions: [...world.revisions, created] };
  return [notified(updateCache(added, index, { revisions: [...belief.revisions, created] }))];
}

/** Possible results of a refresh: the modules have changed or not, or a fetch failed. */
function refresh(world: World, index: number, belief: Belief, n: number, rules: Rules): World[] {
  const revision = belief.revisions.find((one) => one.n === n);
  return (revision === undefined ? [] : results(world, revision, rules)).flatMap(({ budget, change }) => {
    const next = { ...world, budget };
    return change.isPinned === true && change.tag === revision?.tag
      ? [write(next, index, belief, n, { refreshed: belief.policy.refresh })]
      : create(next, index, belief, n + 1);
  });
}

/** Updates or deletes a revision. */
function write(world: World, index: number, belief: Belief, n: number, change: Partial<Revision> | undefined): World {
  const believed = belief.revisions.find((one) => one.n === n);
  const actual = world.revisions.find((one) => one.n === n);
  if (actual === undefined || !isSame(believed, actual)) {
    return conflict(world, index);
  }
  // A write that leaves the state leaves its times.
  const isState = change?.state !== undefined;
  const late = actual.late && (!isState || (change.state === actual.state && change.retries !== true));
  const next = change === undefined ? [] : [{ ...actual, ...(isState ? { retries: false } : {}), ...change, late }];
  const replace = (list: readonly Revision[]): Revision[] => list.flatMap((one) => (one.n === n ? next : [one]));
  const revisions = replace(world.revisions);
  return notified(updateCache({ ...world, revisions }, index, { revisions: replace(belief.revisions) }));
}

function cover(world: World, index: number, belief: Belief, covered: string): World {
  return belief.covered === world.covered
    ? updateCache({ ...world, covered }, index, { covered })
    : conflict(world, index);
}

/** A conflict: the controller reads the current state. */
function conflict(world: World, index: number): World {
  return updateCache(world, index, { revisions: world.revisions, covered: world.covered });
}

/** Possible results of a pre-validation. */
function results(
  { budget, tag }: World,
  { spec, attempts }: Revision,
  { faults, isDown }: Rules,
): { budget: Budget; change: Partial<Revision> }[] {
  const change = (result: Parameters<typeof afterPrevalidation>[1]): Partial<Revision> => {
    const { state, reason, modules, nextRetry } = afterPrevalidation({ attempts: 0 }, result, NOW, () => 0);
    return {
      state,
      reason,
      isPinned: modules.length > 0,
      tag,
      attempts: Math.min(1, attempts + 1),
      retries: nextRetry !== undefined,
    };
  };
  const failed = change({ ok: false, reason: 'FetchFailed', message: '', isTransient: true });
  if (isDown === true) {
    return [{ budget, change: failed }];
  }
  if (spec === 'x') {
    return [{ budget, change: change({ ok: false, reason: 'InvalidSettings', message: '', isTransient: false }) }];
  }
  const good = { budget, change: change({ ok: true, modules: [{ name: 'p', module: spec, digest: 'builtin:p@1' }] }) };
  return faults.has('fetch') && budget.faults > 0
    ? [good, { budget: { ...budget, faults: budget.faults - 1 }, change: failed }]
    : [good];
}
