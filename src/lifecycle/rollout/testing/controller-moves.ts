// What a controller does in a small world: the first thing that its plan says, one write at a time.
import { afterPrevalidation } from '../after-prevalidation.ts';
import { policyStatus } from '../policy-status.ts';
import type { RolloutStep } from '../rollout-view.ts';
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
  told,
  type World,
} from './rollout-world.ts';

/** A controller hears what is new, or does one thing. One that is not the leader any more ends what it had begun. */
export function controllerMoves(world: World, index: number, rules: Rules): Move[] {
  const belief = world.controllers[index];
  if (belief === undefined) {
    return [];
  }
  const { policy, revisions, asked, replicas } = world;
  const news: (readonly [string, Partial<Belief>])[] = rules.hasSeparateCaches
    ? [
        ['policy', { policy }],
        ['revisions', { revisions, asked }],
        ['replicas', { replicas }],
      ]
    : [['all', { policy, revisions, asked, replicas }]];
  const heard = news.map(([what, part]) => ({
    name: `controller ${index} hears of ${what}`,
    world: believe(world, index, part),
  }));
  if (belief.isFormer !== true) {
    return [...heard, ...act(world, index, rules)];
  }
  return act(world, index, rules).map((move) => ({ ...move, world: without(move.world, index) }));
}

function without(world: World, index: number): World {
  return { ...world, controllers: world.controllers.toSpliced(index, 1) };
}

function believe(world: World, index: number, part: Partial<Belief>): World {
  const controllers = world.controllers.map((belief, at) => (at === index ? { ...belief, ...part } : belief));
  return { ...world, controllers };
}

/** The first step of the plan that has something to write; else the status. A trial may end now, or still be under way. */
export function act(world: World, index: number, rules: Rules): Move[] {
  const belief = world.controllers[index];
  if (belief === undefined) {
    return [];
  }
  const view = viewOf(belief, rules);
  const done: Move[] = [];
  for (const step of rules.plan(view).steps) {
    const ends = take(world, index, belief, step, rules);
    done.push(...ends.map((next) => ({ name: `controller ${index}: ${JSON.stringify(step)}`, world: next })));
    if (ends.length > 0 && step.type !== 'prevalidate') {
      return done;
    }
  }
  const { conditions: _, message: __, ...status } = policyStatus(view, undefined, belief.policy.status, NOW);
  if (JSON.stringify(status) !== JSON.stringify(belief.policy.status)) {
    const policy = { ...world.policy, status };
    const next = isSame(belief.policy, world.policy)
      ? believe({ ...world, policy }, index, { policy })
      : believe(world, index, { policy: world.policy });
    done.push({ name: `controller ${index} says ${status.phase} ${status.reason}`, world: next });
  }
  return done;
}

/** What may come of a step; nothing when there is nothing to write. */
function take(world: World, index: number, belief: Belief, step: RolloutStep, rules: Rules): World[] {
  switch (step.type) {
    case 'create':
      return create(world, index, belief, step.revision);
    case 'prevalidate': {
      const revision = belief.revisions.find(({ n }) => n === step.revision);
      const ends = revision === undefined ? [] : trials(world, revision, rules);
      return ends.map(({ budget, change }) => write({ ...world, budget }, index, belief, step.revision, change));
    }
    case 'transition': {
      const order = step.order === undefined ? {} : { order: step.order };
      return [write(world, index, belief, step.revision, { state: step.to, reason: step.reason, ...order })];
    }
    case 'foresee':
      // What is only foreseen may be asked about as well, and nothing relies on it.
      return [];
    case 'widen':
    case 'enforce': {
      const numbers = step.type === 'widen' ? step.revisions : [step.revision];
      const specs = numbers.map((n) => belief.revisions.find((one) => one.n === n)?.spec ?? belief.policy.spec);
      const asked = SPECS.filter((spec) => specs.includes(spec)).join('');
      return asked === belief.asked ? [] : [ask(world, index, belief, asked)];
    }
    case 'delete': {
      const [n] = step.revisions;
      return n === undefined ? [] : [write(world, index, belief, n, undefined)];
    }
    default:
      return step satisfies never;
  }
}

function create(world: World, index: number, belief: Belief, n: number): World[] {
  if (world.revisions.some((one) => one.n === n)) {
    return [refused(world, index)];
  }
  const { spec } = belief.policy;
  const began = {
    state: 'Candidate',
    reason: '',
    order: 0,
    isPinned: false,
    attempts: 0,
    retries: false,
    late: false,
  } as const;
  const made: Revision = { n, spec, ...began };
  const added = { ...world, revisions: [...world.revisions, made] };
  return [told(believe(added, index, { revisions: [...belief.revisions, made] }))];
}

/** Changes or deletes a revision. */
function write(world: World, index: number, belief: Belief, n: number, change: Partial<Revision> | undefined): World {
  const believed = belief.revisions.find((one) => one.n === n);
  const actual = world.revisions.find((one) => one.n === n);
  if (actual === undefined || !isSame(believed, actual)) {
    return refused(world, index);
  }
  const late = change?.state === actual.state && actual.late && change.retries !== true;
  const next = change === undefined ? [] : [{ ...actual, retries: false, ...change, late }];
  const replace = (list: readonly Revision[]): Revision[] => list.flatMap((one) => (one.n === n ? next : [one]));
  const revisions = replace(world.revisions);
  return told(believe({ ...world, revisions }, index, { revisions: replace(belief.revisions) }));
}

function ask(world: World, index: number, belief: Belief, asked: string): World {
  return belief.asked === world.asked ? believe({ ...world, asked }, index, { asked }) : refused(world, index);
}

/** Who writes of what has changed since is refused, and looks at it. */
function refused(world: World, index: number): World {
  return believe(world, index, { revisions: world.revisions, asked: world.asked });
}

/** How a trial may end. */
function trials(
  { budget }: World,
  { spec, attempts }: Revision,
  { faults }: Rules,
): { budget: Budget; change: Partial<Revision> }[] {
  const change = (result: Parameters<typeof afterPrevalidation>[1]): Partial<Revision> => {
    const { state, reason, modules, nextRetry } = afterPrevalidation({ attempts: 0 }, result, NOW, () => 0);
    return {
      state,
      reason,
      isPinned: modules.length > 0,
      attempts: Math.min(1, attempts + 1),
      retries: nextRetry !== undefined,
    };
  };
  if (spec === 'x') {
    return [{ budget, change: change({ ok: false, reason: 'InvalidSettings', message: '', isTransient: false }) }];
  }
  const good = { budget, change: change({ ok: true, modules: [{ name: 'p', module: spec, digest: 'builtin:p@1' }] }) };
  const failed = change({ ok: false, reason: 'FetchFailed', message: '', isTransient: true });
  return faults.has('fetch') && budget.faults > 0
    ? [good, { budget: { ...budget, faults: budget.faults - 1 }, change: failed }]
    : [good];
}
