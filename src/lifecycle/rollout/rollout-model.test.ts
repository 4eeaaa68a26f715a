// Small worlds are followed to the end of their budgets, in every order of what controllers, replicas, users and faults do. In
// every state the rules of rollouts must hold, and from every state the world must come to rest once the faults end.
import { describe, it } from 'node:test';
import { planRollout } from './plan-rollout.ts';
import { brokenBy, unsettledBy } from './testing/rollout-rules.ts';
import { survey } from './testing/rollout-survey.ts';
import { type Budget, calm, newWorld, type Rules, SETTINGS, type Spec, type World } from './testing/rollout-world.ts';

interface Case {
  readonly name: string;
  /** What was applied, and has come to rest, before anything else happens. */
  readonly before?: readonly Spec[];
  readonly spec: Spec;
  readonly replicas?: number;
  readonly budget?: Partial<Budget>;
  readonly rules?: Partial<Rules>;
}

const RULES: Rules = { settings: SETTINGS, hasSeparateCaches: false, faults: new Set(), plan: planRollout, hasOrders: true };
const MAX_STATES = 100_000;

const CASES: readonly Case[] = [
  { name: 'a new policy, every cache by itself', spec: 'a', rules: { hasSeparateCaches: true } },
  { name: 'a change, every cache by itself', before: ['a'], spec: 'b', rules: { hasSeparateCaches: true } },
  { name: 'a change that is taken back', before: ['a'], spec: 'b', budget: { specs: ['a'] } },
  { name: 'a new one that is changed', spec: 'a', budget: { specs: ['b'] } },
  { name: 'a bad change, then a good one', before: ['a'], spec: 'x', budget: { specs: ['b'] } },
  { name: 'a bad policy, then a good one', spec: 'x', budget: { specs: ['b'] } },
  { name: 'a second leader', before: ['a'], spec: 'b', budget: { leaders: 1 } },
  { name: 'a second leader, and the change is taken back', before: ['a'], spec: 'b', replicas: 1, budget: { leaders: 1, specs: ['a'] } },
  { name: 'pin and unpin', before: ['a', 'b'], spec: 'b', budget: { pins: [1, 0] } },
  { name: 'pin and a change', before: ['a', 'b'], spec: 'b', budget: { pins: [1], specs: ['c'] } },
  { name: 'pin, unpin, second leader', before: ['a', 'b'], spec: 'b', replicas: 1, budget: { pins: [1, 0], leaders: 1 } },
  { name: 'pin of none', before: ['a'], spec: 'b', budget: { pins: [7] } },
  { name: 'pin of the bad one', before: ['a', 'x', 'b'], spec: 'b', budget: { pins: [2, 0] } },
  { name: 'pin of the overtaken one', before: ['a'], spec: 'b', budget: { specs: ['c'], pins: [2]  } },
  { name: 'a fetch that fails', before: ['a'], spec: 'f', budget: { faults: 1, ticks: 1 }, rules: { faults: new Set(['fetch']) } },
  { name: 'loads that fail', before: ['a'], spec: 'b', budget: { faults: 2, ticks: 1 }, rules: { faults: new Set(['load']) } },
  { name: 'loads that fail, AllReplicas', before: ['a'], spec: 'b', budget: { faults: 2, ticks: 1 }, rules: { faults: new Set(['load']), settings: { ...SETTINGS, strategy: 'AllReplicas' } } },
  { name: 'replicas come, go, are lost', before: ['a'], spec: 'b', budget: { faults: 2, ticks: 1 }, rules: { faults: new Set(['cut', 'restart', 'leave', 'join']) } },
  { name: 'reject', before: ['a'], spec: 'x', budget: { specs: ['b'], leaders: 1 }, rules: { settings: { ...SETTINGS, degraded: 'Reject' } } },
  { name: 'history', before: ['a', 'b'], spec: 'c', budget: { pins: [1], leaders: 1 }, replicas: 1, rules: { settings: { ...SETTINGS, historyLimit: 0 } } },
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
