// Small worlds are followed to the end of their budgets, in every order of what controllers, replicas, users and faults do. In
// every state the rules of rollouts must hold, and from every state the world must come to rest once the faults end.
import { describe, it } from 'node:test';
import { planRollout } from './plan-rollout.ts';
import type { RolloutSettings } from './rollout-view.ts';
import { brokenBy, unsettledBy } from './testing/rollout-rules.ts';
import { survey } from './testing/rollout-survey.ts';
import { type Budget, newWorld, type Rules, SETTINGS, type Spec, type World } from './testing/rollout-world.ts';
import { calm } from './testing/world-moves.ts';

interface Case {
  readonly name: string;
  /** What was applied, and has come to rest, before anything else happens. */
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
  hasOrders: true,
};
const MAX_STATES = 30_000;
const ALL_REPLICAS: RolloutSettings = { ...SETTINGS, strategy: 'AllReplicas' };
const REJECTING: RolloutSettings = { ...SETTINGS, degraded: 'Reject' };
const WITHOUT_HISTORY: RolloutSettings = { ...SETTINGS, historyLimit: 0 };

/** Two leaders, and more changes at once, are followed with one replica: all cases together take some seconds. */
const CASES: readonly Case[] = [
  { name: 'a new policy, while each cache is behind by itself', spec: 'a', rules: { hasSeparateCaches: true } },
  {
    name: 'a change, while each cache is behind by itself',
    before: ['a'],
    spec: 'b',
    rules: { hasSeparateCaches: true },
  },
  { name: 'a new policy that is changed at once', spec: 'a', budget: { specs: ['b'] } },
  { name: 'a change that is taken back', before: ['a'], spec: 'b', budget: { specs: ['a'] } },
  { name: 'a bad change, then a good one', before: ['a'], spec: 'x', budget: { specs: ['b'] } },
  { name: 'a bad policy, then a good one', spec: 'x', budget: { specs: ['b'] } },
  { name: 'another leader', before: ['a'], spec: 'b', budget: { leaders: 1 } },
  {
    name: 'another leader, and a change that is taken back',
    before: ['a'],
    spec: 'b',
    replicas: 1,
    budget: { leaders: 1, specs: ['a'] },
  },
  { name: 'a pin, and its end', before: ['a', 'b'], spec: 'b', budget: { pins: [1, 0] } },
  {
    name: 'a pin, its end, another leader',
    before: ['a', 'b'],
    spec: 'b',
    replicas: 1,
    budget: { pins: [1, 0], leaders: 1 },
  },
  { name: 'a pin while a change is on its way', before: ['a', 'b'], spec: 'c', replicas: 1, budget: { pins: [1, 0] } },
  { name: 'a pin to what was overtaken', before: ['a'], spec: 'b', replicas: 1, budget: { specs: ['c'], pins: [2] } },
  { name: 'a pin to what is not kept', before: ['a'], spec: 'b', budget: { pins: [7] } },
  { name: 'a pin to what failed', before: ['a', 'x', 'b'], spec: 'b', budget: { pins: [2, 0] } },
  {
    name: 'a source that fails',
    before: ['a'],
    spec: 'f',
    budget: { faults: 1, ticks: 1 },
    rules: { faults: new Set(['fetch']) },
  },
  {
    name: 'replicas that cannot load',
    before: ['a'],
    spec: 'b',
    budget: { faults: 2, ticks: 1 },
    rules: { faults: new Set(['load']) },
  },
  {
    name: 'replicas that cannot load, all of which are waited for',
    before: ['a'],
    spec: 'b',
    budget: { faults: 2, ticks: 1 },
    rules: { faults: new Set(['load']), settings: ALL_REPLICAS },
  },
  {
    name: 'replicas that are cut off or begin anew',
    before: ['a'],
    spec: 'b',
    budget: { faults: 1, ticks: 1 },
    rules: { faults: new Set(['cut', 'restart']) },
  },
  {
    name: 'replicas that come and go',
    before: ['a'],
    spec: 'b',
    replicas: 1,
    budget: { faults: 2 },
    rules: { faults: new Set(['leave', 'join']) },
  },
  {
    name: 'a bad change where degraded policies reject',
    before: ['a'],
    spec: 'x',
    replicas: 1,
    budget: { specs: ['b'], leaders: 1 },
    rules: { settings: REJECTING },
  },
  {
    name: 'no history',
    before: ['a', 'b'],
    spec: 'c',
    replicas: 1,
    budget: { pins: [1], leaders: 1 },
    rules: { settings: WITHOUT_HISTORY },
  },
];

describe('rollouts in small worlds', () => {
  for (const { name, before = [], spec, replicas = 2, budget = {}, rules: other = {} } of CASES) {
    it(name, (context) => {
      const rules = { ...RULES, ...other };
      const checks = { moved: brokenBy(rules), settled: unsettledBy(rules) };
      const [first = spec, ...rest] = [...before, spec];
      let start = newWorld(first, replicas, {});
      for (const next of rest) {
        start = rested(start, rules);
        start = { ...start, policy: { ...start.policy, spec: next } };
      }
      const t = performance.now();
      const found = survey({ ...start, budget: { ...start.budget, ...budget } }, rules, checks, MAX_STATES);
      context.diagnostic(`${found.states} states, ${found.moves} moves, ${Math.round(performance.now() - t)} ms`);
    });
  }
});

function rested(world: World, rules: Rules): World {
  let current = world;
  for (let next = calm(current, rules); next !== undefined; next = calm(current, rules)) {
    current = next;
  }
  return current;
}
