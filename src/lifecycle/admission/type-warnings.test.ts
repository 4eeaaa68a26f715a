import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TypeCheckReport } from '../type-checks/type-check-report.ts';
import { object, review, SPEC } from './testing/validation-cases.ts';
import { TypeWarnings } from './type-warnings.ts';

const REPORT: TypeCheckReport = {
  unserved: [{ field: 'spec.rules[0].resources[0]', message: 'the cluster serves no resource "pod"' }],
  warnings: [{ field: 'spec.matchConditions[0].expression', message: "undefined field 'x' at 1:8, in v1 Pod" }],
  expressions: 1,
  kinds: ['v1 Pod'],
};
const UNSERVED = 'spec.rules[0].resources[0]: the cluster serves no resource "pod" [rule-not-served]';
const TYPES = "spec.matchConditions[0].expression: undefined field 'x' at 1:8, in v1 Pod [type-check]";

const warnings = new TypeWarnings({ check: async () => REPORT });
const policy = object('cap', SPEC);

describe('warnings about the kinds of the cluster', () => {
  it('come with those of the rules', async () => {
    assert.deepEqual(await warnings.add(review('cap', policy), ['a: b [settings]']), [
      'a: b [settings]',
      UNSERVED,
      TYPES,
    ]);
  });

  it('do not repeat what is wrong in every cluster', async () => {
    const known = 'spec.rules[0].resources[0]: Kubernetes has no resource "pod" [rule-never-matches]';
    assert.deepEqual(await warnings.add(review('cap', policy), [known]), [known, TYPES]);
  });

  it('are given when the spec is new, and for policies only', async () => {
    const labelled = object('cap', SPEC, { labels: { a: 'b' } });
    const deleted = object('cap', SPEC, { deletionTimestamp: '2026-01-01T00:00:00Z' });
    const changed = object('cap', { ...SPEC, mode: 'monitor' });
    const given: readonly (readonly [Parameters<typeof warnings.add>[0], boolean])[] = [
      [review('cap', policy), true],
      [review('ap', object('ap', SPEC)), true],
      [review('cap', changed, policy), true],
      [review('cap', labelled, policy), false],
      [review('cap', deleted), false],
      [review('cap', policy, undefined, { operation: 'DELETE' }), false],
      [review('ps', object('ps', {})), false],
    ];
    for (const [one, isGiven] of given) {
      assert.equal((await warnings.add(one, [])).length > 0, isGiven, JSON.stringify(one));
    }
  });

  it('are at most ten', async () => {
    const many = {
      ...REPORT,
      warnings: Array.from({ length: 50 }, () => REPORT.warnings[0] ?? { field: '', message: '' }),
    };
    assert.equal((await new TypeWarnings({ check: async () => many }).add(review('cap', policy), [])).length, 10);
  });

  it('never keep a write waiting, nor refuse it', async () => {
    const endless = new TypeWarnings({ check: () => new Promise(() => undefined) }, 1);
    assert.deepEqual(await endless.add(review('cap', policy), ['a']), ['a']);
    const failing = new TypeWarnings({ check: () => Promise.reject(new Error('mistake')) });
    assert.deepEqual(await failing.add(review('cap', policy), ['a']), ['a']);
  });
});
