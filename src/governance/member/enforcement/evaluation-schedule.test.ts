import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ConfigurationPolicy } from '../../../resources/index.ts';
import { EvaluationSchedule, intervalOf } from './evaluation-schedule.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const KEY = { namespace: 'local-cluster', name: 'checked' };

type Interval = ConfigurationPolicy['spec']['evaluationInterval'];

function policy(
  interval: Interval,
  status: NonNullable<ConfigurationPolicy['status']> = {},
  generation = 1,
): ConfigurationPolicy {
  return {
    apiVersion: 'policy.open-cluster-management.io/v1',
    kind: 'ConfigurationPolicy',
    metadata: { ...KEY, generation },
    spec: {
      remediationAction: 'inform',
      pruneObjectBehavior: 'None',
      'object-templates': [],
      ...(interval === undefined ? {} : { evaluationInterval: interval }),
    },
    status,
  };
}

const COMPLIANT = {
  compliant: 'Compliant',
  lastEvaluatedGeneration: 1,
  lastEvaluated: new Date(NOW).toISOString(),
} as const;

describe('the interval of evaluations', () => {
  for (const [interval, isCompliant, expected] of [
    [undefined, true, 'watch'],
    [{ compliant: 'never' }, true, 'never'],
    [{ compliant: 'never' }, false, 'watch'],
    [{ noncompliant: '1h30m' }, false, 5_400_000],
    [{ compliant: '100000h' }, true, 2 ** 31 - 1],
    [{ compliant: 'watchwatch' }, true, 'watch'],
  ] as readonly (readonly [Interval, boolean, string | number])[]) {
    it(`of ${JSON.stringify(interval)} is ${expected} after ${isCompliant ? 'compliance' : 'a violation'}`, () => {
      assert.equal(intervalOf(policy(interval), isCompliant), expected);
    });
  }
});

describe('an evaluation', () => {
  it('is due for a new spec, whatever the interval', () => {
    const never = { compliant: 'never', noncompliant: 'never' };
    for (const status of [{}, { ...COMPLIANT, lastEvaluatedGeneration: 0 }]) {
      assert.deepEqual(new EvaluationSchedule().take(KEY, policy(never, status), NOW), { isDue: true });
    }
  });

  it('is due after a suspension, whatever the interval', () => {
    const never = { compliant: 'never', noncompliant: 'never' };
    const suspended = { ...COMPLIANT, compliant: 'Pending' } as const;
    assert.deepEqual(new EvaluationSchedule().take(KEY, policy(never, suspended), NOW), { isDue: true });
  });

  it('is not due with never, also not for a fresh process', () => {
    const due = new EvaluationSchedule().take(KEY, policy({ compliant: 'never' }, COMPLIANT), NOW + 1e9);
    assert.deepEqual(due, { isDue: false, afterMs: undefined });
  });

  it('is due when the interval has passed since the last one', () => {
    const schedule = new EvaluationSchedule();
    const hourly = policy({ compliant: '1h' }, COMPLIANT);
    assert.deepEqual(schedule.take(KEY, hourly, NOW + 1_000), { isDue: false, afterMs: 3_599_000 });
    assert.deepEqual(schedule.take(KEY, hourly, NOW + 3_600_000), { isDue: true });
    schedule.evaluated(KEY, NOW + 3_600_000);
    assert.deepEqual(schedule.take(KEY, hourly, NOW + 3_600_001), { isDue: false, afterMs: 3_599_999 });
    schedule.forget(KEY, NOW + 3_600_001);
    assert.deepEqual(schedule.take(KEY, hourly, NOW + 3_600_001), { isDue: true });
  });

  it('of a policy whose objects change all the time has to wait, but not after an edit', () => {
    const schedule = new EvaluationSchedule();
    const watching = policy(undefined, COMPLIANT);
    const due = Array.from({ length: 20 }, () => schedule.take(KEY, watching, NOW).isDue).filter(Boolean);
    assert.equal(due.length, 10);
    assert.deepEqual(schedule.take(KEY, watching, NOW), { isDue: false, afterMs: 5_000 });
    assert.deepEqual(schedule.take(KEY, policy(undefined, COMPLIANT, 2), NOW), { isDue: true });
    assert.deepEqual(schedule.take(KEY, watching, NOW + 5_001), { isDue: true });
  });

  it('of a policy that is created again before it is seen to be gone has to wait', () => {
    const schedule = new EvaluationSchedule();
    const take = (uid: string) => schedule.take(KEY, { ...policy(undefined), metadata: { ...KEY, uid } }, NOW);
    const due = Array.from({ length: 12 }, (_, index) => take(`uid-${index}`).isDue);
    assert.deepEqual(due, [...Array.from({ length: 10 }, () => true), false, false]);
  });

  it('of a policy that is deleted and created again all the time has to wait', () => {
    const schedule = new EvaluationSchedule();
    const take = (now: number): boolean => {
      const { isDue } = schedule.take(KEY, policy(undefined), now);
      schedule.forget(KEY, now);
      return isDue;
    };
    assert.equal(Array.from({ length: 50 }, () => take(NOW)).filter(Boolean).length, 10);
    const minute = Array.from({ length: 600 }, (_, index) => take(NOW + 100 * (index + 1)));
    assert.equal(minute.filter(Boolean).length, 12);
    for (let index = 0; index < 10_000; index += 1) {
      const other = { ...KEY, name: `p-${index}` };
      schedule.take(other, policy(undefined), NOW);
      schedule.forget(other, NOW);
    }
    assert.equal(take(NOW), true, 'the oldest is forgotten');
  });

  it('is not delayed by what is long gone, which is forgotten', () => {
    const schedule = new EvaluationSchedule();
    const churn = (name: string, now: number): void => {
      const key = { ...KEY, name };
      assert.ok(schedule.take(key, policy(undefined), now).isDue);
      schedule.forget(key, now);
    };
    for (let index = 0; index < 100; index += 1) {
      churn(`p-${index}`, NOW);
    }
    assert.equal(schedule.deleted, 100);
    // One evaluation is made up for in 5 seconds.
    churn('last', NOW + 5_000);
    assert.equal(schedule.deleted, 1);
  });
});
