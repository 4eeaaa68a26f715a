import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { cycleThrough, deadlocks, type Goal, reachableGoals } from './goals.ts';
import { stronglyConnected } from './strongly-connected.ts';

const MOST = 12;
const successors = fc
  .integer({ min: 1, max: MOST })
  .chain((count) =>
    fc.array(fc.array(fc.nat({ max: count - 1 }), { maxLength: 4 }), { minLength: count, maxLength: count }),
  );
const goals = successors.chain((lists) =>
  fc
    .array(fc.boolean(), { minLength: lists.length, maxLength: lists.length })
    .map((any) => lists.map((needs, index): Goal => ({ needs, any: any[index] === true }))),
);

/** Whether `from` leads to `to` in at least one step. */
function leadsTo(lists: readonly (readonly number[])[], from: number, to: number): boolean {
  const seen = new Set<number>();
  const open = [...(lists[from] ?? [])];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (!seen.has(next)) {
      seen.add(next);
      open.push(...(lists[next] ?? []));
    }
  }
  return seen.has(to);
}

/** The definition: what can be reached, until nothing is added. */
function reachableByDefinition(all: readonly Goal[]): readonly boolean[] {
  let reachable = all.map(() => false);
  for (let round = 0; round <= all.length; round++) {
    const before = reachable;
    reachable = all.map(({ needs, any }) =>
      any ? needs.some((need) => before[need]) : needs.every((need) => before[need]),
    );
  }
  return reachable;
}

describe('stronglyConnected', () => {
  it('groups nodes that lead to each other, each node once, successors first', () => {
    fc.assert(
      fc.property(successors, (lists) => {
        const components = stronglyConnected(lists);
        assert.deepEqual(
          components.flat().toSorted((a, b) => a - b),
          [...lists.keys()],
        );
        const componentOf = new Map(components.flatMap((nodes, index) => nodes.map((node) => [node, index] as const)));
        for (const a of lists.keys()) {
          for (const b of lists.keys()) {
            const isSame = a === b || (leadsTo(lists, a, b) && leadsTo(lists, b, a));
            assert.equal(componentOf.get(a) === componentOf.get(b), isSame);
            assert.ok(!leadsTo(lists, a, b) || componentOf.get(b)! <= componentOf.get(a)!);
          }
        }
      }),
    );
  });

  it('takes chains and cycles of any length', () => {
    const length = 200_000;
    const chain = Array.from({ length }, (_, node) => (node + 1 < length ? [node + 1] : []));
    assert.equal(stronglyConnected(chain).length, length);
    const ring = Array.from({ length }, (_, node) => [(node + 1) % length]);
    assert.equal(stronglyConnected(ring).length, 1);
  });
});

describe('reachableGoals', () => {
  it('equals the definition', () => {
    fc.assert(fc.property(goals, (all) => assert.deepEqual(reachableGoals(all), reachableByDefinition(all))));
  });
});

describe('deadlocks', () => {
  it('are the unreachable goals that lead back to themselves through unreachable goals', () => {
    fc.assert(
      fc.property(goals, (all) => {
        const reachable = reachableByDefinition(all);
        const stuck = all.map(({ needs }, goal) =>
          reachable[goal] === true ? [] : needs.filter((need) => reachable[need] !== true),
        );
        const expected = [...all.keys()].filter((goal) => leadsTo(stuck, goal, goal));
        const found = deadlocks(all);
        assert.deepEqual(
          found.flat().toSorted((a, b) => a - b),
          expected,
        );
        for (const group of found) {
          const [start = -1] = group;
          const way = cycleThrough(start, new Set(group), all);
          assert.ok(way.length > 1 && way[0] === start && way.at(-1) === start);
          way.slice(1).forEach((goal, index) => assert.ok(all[way[index]!]!.needs.includes(goal)));
        }
      }),
    );
  });
});
