// Explores all orders of moves by controllers, replicas, users and faults, within a budget. The rules of rollouts must
// hold in every state, and every state must settle once the faults end.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { creation, planRollout, type ReplicaFacts, type RolloutPlan, type RolloutStep } from '../../rollout/index.ts';
import type { AdmissionRolloutView } from './admission-rollout-view.ts';
import { type RequestOutcome, requestOutcome } from './request-outcome.ts';
import { viewOf } from './testing/believed-view.ts';
import { moveRules, probed, settledRules } from './testing/rollout-rules.ts';
import { RuleBroken, explore, type Exploration } from './testing/rollout-exploration.ts';
import {
  type Budget,
  newReplica,
  newWorld,
  type Rules,
  SETTINGS,
  type Spec,
  type World,
} from './testing/rollout-world.ts';
import { settle } from './testing/world-moves.ts';

interface Case {
  readonly name: string;
  /** Specs that were applied before and have settled. */
  readonly before?: readonly Spec[];
  readonly spec: Spec;
  readonly replicas?: number;
  readonly budget?: Partial<Budget>;
  readonly rules?: Partial<Rules>;
}

const RULES: Rules = {
  settings: SETTINGS,
  hasSeparateCaches: false,
  faults: new Set(),
  plan: planRollout,
  outcome: requestOutcome,
  hasOrders: true,
};
const MAX_STATES = 20_000;
const FETCHES = { faults: new Set(['fetch'] as const) };
const LOADS = { faults: new Set(['load'] as const) };
const ALL_REPLICAS = { ...LOADS, settings: { ...SETTINGS, strategy: 'AllReplicas' } } as const;
const COMING_AND_GOING = { faults: new Set(['leave', 'join'] as const) };
const REJECTING = { settings: { ...SETTINGS, degraded: 'Reject' } } as const;
const IGNORING = { settings: { ...SETTINGS, degraded: 'Ignore' } } as const;
const STRICT = { settings: { ...SETTINGS, unserved: 'Reject' } } as const;
const WITHOUT_HISTORY = { settings: { ...SETTINGS, historyLimit: 0 } };
/** A replica that never reports. */
const GHOST: ReplicaFacts = { name: 'ghost', state: 'lost', revisions: new Map() };

/** Cases with two leaders, or with several changes, have one replica: all cases together take some seconds. */
const CASES: readonly Case[] = [
  { name: 'a new policy, with independent caches', spec: 'a', rules: { hasSeparateCaches: true } },
  {
    name: 'a change, with independent caches',
    before: ['a'],
    spec: 'b',
    rules: { hasSeparateCaches: true },
  },
  { name: 'a new policy that changes at once', spec: 'a', replicas: 1, budget: { specs: ['b'] } },
  { name: 'a change that is reverted', before: ['a'], spec: 'b', budget: { specs: ['a'] } },
  { name: 'a bad change, then a good one', before: ['a'], spec: 'x', budget: { specs: ['b'] } },
  { name: 'a bad policy, then a good one', spec: 'x', budget: { specs: ['b'] } },
  { name: 'another leader', before: ['a'], spec: 'b', budget: { leaders: 1 } },
  {
    name: 'another leader, and a bad change',
    before: ['a'],
    spec: 'x',
    replicas: 1,
    budget: { leaders: 1, specs: ['b'] },
  },
  { name: 'a pin and its removal', before: ['a', 'b'], spec: 'b', budget: { pins: [1, 0] } },
  { name: 'a pin, and another leader', before: ['a', 'b'], spec: 'b', budget: { pins: [1], leaders: 1 } },
  { name: 'a pin while a change is on its way', before: ['a', 'b'], spec: 'c', replicas: 1, budget: { pins: [1] } },
  {
    name: 'a pin, its removal and a change at once',
    before: ['a', 'b'],
    spec: 'b',
    replicas: 1,
    budget: { specs: ['c'], pins: [1, 0] },
  },
  {
    name: 'a pin to a superseded revision',
    before: ['a'],
    spec: 'b',
    replicas: 1,
    budget: { specs: ['c'], pins: [2] },
  },
  { name: 'a pin to a missing revision', before: ['a'], spec: 'b', budget: { pins: [7] } },
  { name: 'a pin to a failed revision', before: ['a', 'x', 'b'], spec: 'b', budget: { pins: [2, 0] } },
  { name: 'a source that fails', before: ['a'], spec: 'f', budget: { faults: 1, ticks: 1 }, rules: FETCHES },
  { name: 'replicas that cannot load', before: ['a'], spec: 'b', budget: { faults: 2, ticks: 1 }, rules: LOADS },
  {
    name: 'replicas that are all required',
    before: ['a'],
    spec: 'b',
    budget: { faults: 2, ticks: 1 },
    rules: ALL_REPLICAS,
  },
  {
    name: 'replicas that disconnect',
    before: ['a'],
    spec: 'b',
    budget: { faults: 1, ticks: 1 },
    rules: { faults: new Set(['cut']) },
  },
  {
    name: 'replicas that restart',
    before: ['a'],
    spec: 'b',
    budget: { faults: 1 },
    rules: { faults: new Set(['restart']) },
  },
  { name: 'replicas that join', before: ['a'], spec: 'b', replicas: 1, budget: { faults: 1 }, rules: COMING_AND_GOING },
  {
    name: 'replicas that leave, and join again',
    before: ['a'],
    spec: 'a',
    replicas: 2,
    budget: { faults: 3 },
    rules: COMING_AND_GOING,
  },
  {
    name: 'a bad change where degraded policies reject',
    before: ['a'],
    spec: 'x',
    budget: { specs: ['b'] },
    rules: REJECTING,
  },
  {
    name: 'a bad change where degraded policies are ignored',
    before: ['a'],
    spec: 'x',
    budget: { specs: ['b'] },
    rules: IGNORING,
  },
  { name: 'another failurePolicy', before: ['a'], spec: 'A' },
  {
    name: 'another failurePolicy, with independent caches',
    before: ['A'],
    spec: 'a',
    rules: { hasSeparateCaches: true },
  },
  {
    name: 'another failurePolicy while caches are lost',
    before: ['a'],
    spec: 'A',
    replicas: 1,
    budget: { faults: 2 },
    rules: { faults: new Set(['restart', 'load'] as const) },
  },
  {
    name: 'a failurePolicy that is made stricter while caches are lost',
    before: ['A'],
    spec: 'a',
    replicas: 1,
    budget: { faults: 2 },
    rules: { faults: new Set(['restart', 'load'] as const) },
  },
  {
    name: 'another failurePolicy while replicas come, go and disconnect',
    before: ['a'],
    spec: 'A',
    replicas: 1,
    budget: { faults: 1 },
    rules: { faults: new Set(['cut', 'leave', 'join'] as const) },
  },
  {
    name: 'another failurePolicy, and another leader',
    before: ['a'],
    spec: 'A',
    budget: { leaders: 1 },
  },
  {
    name: 'another failurePolicy while a change cannot be fetched',
    before: ['a'],
    spec: 'f',
    replicas: 1,
    budget: { specs: ['A'], faults: 1 },
    rules: FETCHES,
  },
  {
    name: 'another failurePolicy, and a refresh',
    before: ['a'],
    spec: 'A',
    replicas: 1,
    budget: { refreshes: 1, tags: 1, faults: 1 },
    rules: FETCHES,
  },
  {
    name: 'a pin to another failurePolicy',
    before: ['a', 'A'],
    spec: 'A',
    replicas: 1,
    budget: { pins: [1], faults: 2 },
    rules: { faults: new Set(['restart', 'load'] as const) },
  },
  { name: 'another failurePolicy twice', before: ['a'], spec: 'A', replicas: 1, budget: { specs: ['a'] } },
  {
    name: 'another failurePolicy after a bad change, where degraded policies reject',
    before: ['a', 'x'],
    spec: 'A',
    replicas: 1,
    rules: REJECTING,
  },
  {
    name: 'lost caches where degraded policies are ignored',
    before: ['a'],
    spec: 'a',
    replicas: 1,
    budget: { faults: 2 },
    rules: { ...IGNORING, faults: new Set(['restart', 'load'] as const) },
  },
  { name: 'break-glass', before: ['a'], spec: 'a', budget: { disarms: [true, false] } },
  {
    name: 'break-glass for good, while a change is on its way',
    before: ['a'],
    spec: 'b',
    replicas: 1,
    budget: { disarms: [true] },
  },
  {
    name: 'break-glass while a change is on its way',
    before: ['a'],
    spec: 'b',
    replicas: 1,
    budget: { disarms: [true, false] },
  },
  {
    name: 'break-glass before anything served',
    spec: 'a',
    replicas: 1,
    budget: { disarms: [true, false] },
  },
  {
    name: 'break-glass, and a bad change',
    before: ['a'],
    spec: 'x',
    replicas: 1,
    budget: { disarms: [true, false] },
  },
  {
    name: 'break-glass, and a bad change, where degraded policies reject',
    before: ['a'],
    spec: 'x',
    replicas: 1,
    budget: { disarms: [true, false] },
    rules: REJECTING,
  },
  {
    name: 'break-glass, and another leader',
    before: ['a'],
    spec: 'a',
    replicas: 1,
    budget: { disarms: [true, false], leaders: 1 },
  },
  {
    name: 'break-glass, and a pin',
    before: ['a', 'b'],
    spec: 'b',
    replicas: 1,
    budget: { disarms: [true, false], pins: [1] },
  },
  {
    name: 'break-glass while caches are lost',
    before: ['a'],
    spec: 'a',
    replicas: 1,
    budget: { disarms: [true, false], faults: 2 },
    rules: { faults: new Set(['restart', 'load'] as const) },
  },
  {
    name: 'break-glass while a change cannot be fetched',
    before: ['a'],
    spec: 'f',
    replicas: 1,
    budget: { disarms: [true, false], faults: 1 },
    rules: FETCHES,
  },
  { name: 'a pin to a bad policy', before: ['x'], spec: 'b', replicas: 1, budget: { pins: [1, 0] } },
  { name: 'a bad policy where unserved policies reject', spec: 'x', budget: { specs: ['b'] }, rules: STRICT },
  { name: 'a new policy that cannot be fetched', spec: 'f', budget: { faults: 1, ticks: 1 }, rules: FETCHES },
  { name: 'a new policy that replicas cannot load', spec: 'a', budget: { faults: 2, ticks: 1 }, rules: LOADS },
  {
    name: 'a bad change, a pin and no history',
    before: ['a', 'x'],
    spec: 'x',
    replicas: 1,
    budget: { pins: [1, 0] },
    rules: WITHOUT_HISTORY,
  },
  { name: 'refreshes, and a tag that moves', before: ['a'], spec: 'a', replicas: 1, budget: { refreshes: 2, tags: 1 } },
  {
    name: 'a refresh, and another leader',
    before: ['a'],
    spec: 'a',
    replicas: 1,
    budget: { refreshes: 1, tags: 1, leaders: 1 },
  },
  {
    name: 'a refresh, with independent caches',
    before: ['a'],
    spec: 'a',
    replicas: 1,
    budget: { refreshes: 1, tags: 1 },
    rules: { hasSeparateCaches: true },
  },
  {
    name: 'a refresh and a change',
    before: ['a'],
    spec: 'b',
    replicas: 1,
    budget: { refreshes: 1, tags: 1, specs: ['x'] },
  },
  {
    name: 'a refresh of a policy that is pinned',
    before: ['a', 'b'],
    spec: 'b',
    replicas: 1,
    budget: { refreshes: 1, tags: 1, pins: [1] },
  },
  {
    name: 'a refresh from a source that fails',
    before: ['a'],
    spec: 'a',
    replicas: 1,
    budget: { refreshes: 2, tags: 1, faults: 1, ticks: 1 },
    rules: FETCHES,
  },
  {
    name: 'no history',
    before: ['a', 'b'],
    spec: 'c',
    replicas: 1,
    budget: { pins: [1] },
    rules: WITHOUT_HISTORY,
  },
  {
    name: 'no history, and a bad change',
    before: ['a', 'b'],
    spec: 'x',
    replicas: 1,
    budget: { pins: [3, 0] },
    rules: WITHOUT_HISTORY,
  },
];

/** Planners with a defect, and a case that reveals it. */
const MUTANTS: readonly (readonly [string, string, Partial<Rules>])[] = [
  [
    'covers a policy that never served',
    'a bad policy, then a good one',
    { plan: (view) => planRollout({ ...view, settings: STRICT.settings }) },
  ],
  [
    'keeps the coverage of a degraded policy that is to be ignored',
    'a bad change where degraded policies are ignored',
    { plan: without((step) => step.type === 'uncover') },
  ],
  ['switches before replicas have loaded', 'a change that is reverted', { plan: hasty }],
  [
    'switches before the phase is published',
    'a change that is reverted',
    { plan: (view) => planRollout({ ...view, phase: undefined }) },
  ],
  [
    'never retires',
    'a change that is reverted',
    { plan: without((step) => step.type === 'transition' && step.to === 'Retired') },
  ],
  [
    'never supersedes',
    'a change that is reverted',
    { plan: without((step) => step.type === 'transition' && step.to === 'Superseded') },
  ],
  [
    'switches before the new requests are covered',
    'a change that is reverted',
    { plan: without((step) => step.type === 'widen') },
  ],
  [
    'keeps the coverage of old requests',
    'a change that is reverted',
    { plan: without((step) => step.type === 'enforce') },
  ],
  ['reduces the coverage at once', 'a change that is reverted', { plan: narrow }],
  ['gives every revision the same order', 'a pin and its removal', { plan: unordered }],
  ['takes old reports for new', 'a pin and its removal', { hasOrders: false }],
  [
    'retires the serving revision when a change is bad',
    'a bad change, then a good one',
    { plan: (view) => planRollout({ ...view, settings: REJECTING.settings }) },
  ],
  ['deletes the serving revision', 'no history', { plan: (view) => pruned(view) }],
  [
    'retries nothing',
    'a source that fails',
    {
      plan: (view) =>
        planRollout({
          ...view,
          revisions: view.revisions.map((one) => (one.nextRetry === undefined ? one : { ...one, nextRetry: Infinity })),
        }),
    },
  ],
  ['ignores refreshes', 'refreshes, and a tag that moves', { plan: without((step) => step.type === 'refresh') }],
  ['makes a revision for each refresh', 'refreshes, and a tag that moves', { plan: wasteful }],
  [
    'says what is declared instead of what answers',
    'another failurePolicy while caches are lost',
    { outcome: declaredOutcome },
  ],
  ['enforces what is disarmed', 'break-glass', { plan: (view) => planRollout({ ...view, settings: SETTINGS }) }],
  [
    'waits for a replica forever',
    'replicas that cannot load',
    {
      plan: (view) =>
        planRollout({ ...view, replicas: [...(view.replicas ?? []), GHOST], settings: ALL_REPLICAS.settings }),
    },
  ],
];

/** What requests would get if the declared failurePolicy answered. */
function declaredOutcome(view: AdmissionRolloutView): RequestOutcome {
  const outcome = requestOutcome(view);
  const message = view.spec.failurePolicy === 'Ignore' ? 'requests are admitted' : 'requests are rejected';
  return outcome.reason === 'FailurePolicy' ? { ...outcome, message } : outcome;
}

/** Makes a revision for each refresh. */
function wasteful(view: AdmissionRolloutView): RolloutPlan {
  const plan = planRollout(view);
  const refresh = plan.steps.find(({ type }) => type === 'refresh');
  return refresh === undefined ? plan : { ...plan, steps: [creation(view)] };
}

describe('rollouts in a model', () => {
  for (const one of CASES) {
    it(one.name, (context) => {
      const { states, moves } = follow(one);
      context.diagnostic(`${states} states, ${moves} moves`);
    });
  }
});

describe('a rollout in a disaster: all caches are lost, and nothing can be fetched', () => {
  for (const before of ['a', 'A'] as const) {
    for (const spec of ['a', 'A', 'b', 'x'] as const) {
      for (const left of [0, 1, 2]) {
        it(`${before} is changed to ${spec}, with ${left} replicas left`, () => {
          const start = settled(newWorld(before, left, {}));
          const served = left === 0 ? settled(newWorld(before, 1, {})) : start;
          const replicas = served.replicas.slice(0, left).map(({ name }) => newReplica(name, served.revisions));
          const rules = { ...RULES, isDown: true } as const;
          const world = { ...served, replicas, policy: { ...served.policy, spec } };
          const after = settled(world, rules);
          const isInherited = spec.toLowerCase() === before.toLowerCase();
          const answering = isInherited ? spec : before;
          const expected = answering === 'A' ? 'admitted' : 'rejected';
          assert.deepEqual(new Set(probed(after)), new Set([expected]), JSON.stringify(after));
          const outcome = requestOutcome(viewOf(after, rules));
          assert.deepEqual([outcome.status, outcome.reason], ['True', 'FailurePolicy']);
          assert.match(outcome.message, new RegExp(expected));
        });
      }
    }
  }
});

describe('a rollout in a disaster where degraded policies are ignored', () => {
  for (const left of [0, 1, 2]) {
    it(`with ${left} replicas left, is not enforced once replicas cannot load it, until one can`, () => {
      const rules = { ...RULES, ...IGNORING, isDown: true } as const;
      const served = settled(newWorld('a', Math.max(left, 1), {}), { ...RULES, ...IGNORING });
      const replicas = served.replicas.slice(0, left).map(({ name }) => newReplica(name, served.revisions));
      const after = settled({ ...served, replicas }, rules);
      assert.deepEqual(new Set(probed(after)), new Set(['nothing']), JSON.stringify(after));
      const { status, reason } = requestOutcome(viewOf(after, rules));
      assert.deepEqual([status, reason], ['False', 'DegradedIgnored']);
      const gone = settled({ ...after, replicas: [] }, rules);
      assert.equal(gone.covered, after.covered, 'and stays so when replicas leave');
      const back = settled({ ...gone, replicas: [newReplica('r', gone.revisions)] }, { ...RULES, ...IGNORING });
      assert.deepEqual(probed(back), ['judged'], JSON.stringify(back));
      assert.equal(requestOutcome(viewOf(back, rules)).reason, 'Serving');
    });
  }
});

describe('a first revision that no replica can load', () => {
  for (const [unserved, expected] of [
    ['Reject', 'rejected'],
    ['Ignore', 'nothing'],
  ] as const) {
    it(`is ${expected} where unserved policies are to ${unserved}`, () => {
      const rules = { ...RULES, settings: { ...SETTINGS, unserved }, isDown: true } as const;
      const world = newWorld('a', 2, {});
      const tried = { n: 1, spec: 'a', state: 'Validated', reason: '', order: 0, isPinned: true, tag: 1 } as const;
      const rest = { refresh: 0, refreshed: 0, attempts: 1, retries: false, late: false, isEnforced: false } as const;
      const revisions = [{ ...tried, ...rest }];
      const replicas = world.replicas.map(({ name }) => newReplica(name, revisions));
      const after = settled({ ...world, revisions, replicas }, rules);
      assert.deepEqual(new Set(probed(after)), new Set([expected]), JSON.stringify(after));
      const { status } = requestOutcome(viewOf(after, rules));
      assert.equal(status, expected === 'rejected' ? 'True' : 'False');
    });
  }
});

describe('a policy that is armed again', () => {
  it('serves what it was disarmed with, although a newer revision cannot be fetched', () => {
    const served = settled(newWorld('a', 1, {}));
    const disarmed = settled({ ...served, policy: { ...served.policy, isDisarmed: true } });
    assert.deepEqual(probed(disarmed), ['nothing']);
    const rules = { ...RULES, isDown: true } as const;
    const changed = settled({ ...disarmed, policy: { ...disarmed.policy, spec: 'b' } }, rules);
    const armed = settled({ ...changed, policy: { ...changed.policy, isDisarmed: false } }, rules);
    assert.deepEqual(
      armed.revisions.map(({ spec, state }) => `${spec} ${state}`),
      ['a Serving', 'b Candidate'],
    );
    // Its modules are lost as well.
    assert.deepEqual([probed(armed), armed.covered], [['rejected'], 'a']);
    assert.equal(requestOutcome(viewOf(armed, rules)).reason, 'FailurePolicy');
  });
});

describe('a rollout that fails where degraded policies reject', () => {
  for (const [before, expected] of [
    ['a', 'rejected'],
    ['A', 'admitted'],
  ] as const) {
    it(`leaves ${before} with its own failurePolicy: that of the failed revision is used nowhere`, () => {
      const rules = { ...RULES, ...REJECTING };
      const served = settled(newWorld(before, 1, {}), rules);
      const after = settled({ ...served, policy: { ...served.policy, spec: 'x' } }, rules);
      assert.deepEqual([probed(after), after.covered], [[expected], before]);
      const restarted = settled({ ...after, replicas: [newReplica('r', after.revisions)] }, rules);
      assert.deepEqual([probed(restarted), restarted.covered], [[expected], before]);
    });
  }
});

describe('the rules of the model', () => {
  for (const [what, name, mutation] of MUTANTS) {
    it(`reject a planner that ${what}`, () => {
      const one = CASES.find((other) => other.name === name);
      assert.ok(one !== undefined);
      assert.throws(() => follow({ ...one, rules: { ...one.rules, ...mutation } }), RuleBroken);
    });
  }
});

/** @throws RuleBroken */
function follow({ before = [], spec, replicas = 2, budget = {}, rules: special = {} }: Case): Exploration {
  const rules = { ...RULES, ...special };
  let world = newWorld(before[0] ?? spec, replicas, {});
  for (const next of before.length === 0 ? [] : [...before.slice(1), spec]) {
    world = settled(world);
    world = { ...world, policy: { ...world.policy, spec: next } };
  }
  const start = { ...world, budget: { ...world.budget, ...budget } };
  return explore(start, rules, { moved: moveRules(rules), settled: settledRules(rules) }, MAX_STATES);
}

/** The world after it has settled, or repeats itself: retries never end. */
function settled(world: World, rules = RULES): World {
  const known = new Set<string>();
  let current = world;
  for (let next = settle(current, rules); next !== undefined; next = settle(current, rules)) {
    const key = JSON.stringify(next);
    if (known.has(key)) {
      break;
    }
    known.add(key);
    current = next;
  }
  return current;
}

function without(isLeftOut: (step: RolloutStep) => boolean): typeof planRollout {
  return (view) => {
    const plan = planRollout(view);
    return { ...plan, steps: plan.steps.filter((step) => !isLeftOut(step)) };
  };
}

function hasty(view: AdmissionRolloutView): RolloutPlan {
  const report = { state: 'Staged', reason: '', message: '', nextRetry: undefined } as const;
  const revisions = new Map(view.revisions.map(({ number }) => [number, report]));
  return planRollout({ ...view, replicas: view.replicas?.map((replica) => ({ ...replica, revisions })) });
}

function unordered(view: AdmissionRolloutView): RolloutPlan {
  const plan = planRollout(view);
  return { ...plan, steps: plan.steps.map((step) => ('order' in step ? { ...step, order: 1 } : step)) };
}

function narrow(view: AdmissionRolloutView): RolloutPlan {
  const plan = planRollout(view);
  const serving = view.revisions.findLast(({ state }) => state === 'Serving');
  const isFlipping = plan.steps.some(({ type }) => type === 'widen');
  return serving === undefined || isFlipping
    ? plan
    : { ...plan, steps: [...plan.steps, { type: 'enforce', revision: serving.number }] };
}

function pruned(view: AdmissionRolloutView): RolloutPlan {
  const plan = planRollout(view);
  const serving = view.revisions.find(({ state }) => state === 'Serving');
  const isDeleting = serving !== undefined && plan.steps.some(({ type }) => type === 'delete');
  return isDeleting ? { ...plan, steps: [{ type: 'delete', revisions: [serving.number] }] } : plan;
}
