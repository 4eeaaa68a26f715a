import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type EvaluatedSpec, EvaluationShare } from './evaluation-share.ts';

const spec = (name: string, generation = 1): EvaluatedSpec => ({
  kind: 'ConfigurationPolicy',
  key: { namespace: 'local-cluster', name },
  generation,
});

interface Simulated {
  readonly spec: (now: number) => EvaluatedSpec;
  readonly tookMs: number;
  readonly isExceeded: boolean;
}

/** How often each policy is evaluated in an hour in which all of them would be evaluated all the time, and the time it takes. */
function hourOf(policies: readonly Simulated[]): { readonly counts: readonly number[]; readonly spentMs: number } {
  const share = new EvaluationShare();
  const counts = policies.map(() => 0);
  let now = 0;
  let spentMs = 0;
  while (now < 3_600_000) {
    for (const [index, policy] of policies.entries()) {
      const evaluated = policy.spec(now);
      if (share.waitMs(evaluated, now) === 0) {
        share.begin(evaluated, now);
        now += policy.tookMs;
        spentMs += policy.tookMs;
        share.end(evaluated, policy.tookMs, policy.isExceeded, now);
        counts[index] = (counts[index] ?? 0) + 1;
      }
    }
    now += 50;
  }
  return { counts, spentMs };
}

describe('the share of slow policies', () => {
  it('is that of each kind: another kind of the same name does not end it', () => {
    const share = new EvaluationShare();
    share.end(spec('a'), 1_000, true, 0);
    share.end({ ...spec('a'), kind: 'CertificatePolicy' }, 1, false, 0);
    assert.equal(share.waitMs(spec('a'), 0), 10_000);
  });

  it('is nothing to policies that are fast', () => {
    const share = new EvaluationShare();
    share.end(spec('slow'), 1_000, true, 0);
    for (let count = 0; count < 100; count += 1) {
      assert.equal(share.waitMs(spec('fast'), count), 0);
      share.begin(spec('fast'), count);
      share.end(spec('fast'), 20, false, count);
    }
  });

  it('is a quarter of the time, however many there are and however often they are edited', () => {
    const edited = Array.from({ length: 100 }, (_, index) => ({
      spec: (now: number) => spec(`slow-${index}`, now),
      tookMs: 1_000,
      isExceeded: true,
    }));
    const { counts, spentMs } = hourOf(edited);
    // Each of them once before it is known, and the last one may have begun.
    assert.ok(spentMs <= 3_600_000 / 4 + 101 * 1_000, `${spentMs} ms`);
    assert.ok(counts.every((count) => count > 0));
  });

  it('shrinks for a policy that always uses all: one evaluation in ten minutes', () => {
    const { counts } = hourOf([{ spec: () => spec('bomb'), tookMs: 1_000, isExceeded: true }]);
    // After 0, 10, 30, 70, 150, 310 and 630 seconds, and then every ten minutes.
    assert.deepEqual(counts, [11]);
  });

  it('is a quarter for a slow policy within its limits', () => {
    const { counts } = hourOf([{ spec: () => spec('large'), tookMs: 500, isExceeded: false }]);
    assert.ok((counts[0] ?? 0) > 1_500, `${counts[0]}`);
  });

  it('is reserved when an evaluation begins', () => {
    const share = new EvaluationShare();
    share.end(spec('a'), 1_000, false, 0);
    share.end(spec('b'), 1_000, false, 0);
    assert.equal(share.waitMs(spec('a'), 3_000), 0);
    share.begin(spec('a'), 3_000);
    assert.equal(share.waitMs(spec('b'), 3_000), 4_000);
  });

  it('lets an edited policy be evaluated before its own delay ends, but does not forget it', () => {
    const share = new EvaluationShare();
    share.end(spec('a'), 1_000, true, 0);
    assert.equal(share.waitMs(spec('a'), 3_000), 7_000);
    assert.equal(share.waitMs(spec('a', 2), 3_000), 0);
    share.end(spec('a', 2), 1_000, true, 4_000);
    assert.equal(share.waitMs(spec('a', 2), 10_000), 14_000);
    share.end(spec('a', 3), 5, false, 12_000);
    assert.equal(share.waitMs(spec('a', 3), 12_000), 0);
  });

  it('remembers a bounded number of policies', () => {
    const share = new EvaluationShare();
    for (let index = 0; index <= 10_000; index += 1) {
      share.end(spec(`p-${index}`), 100, true, 0);
    }
    assert.equal(share.waitMs(spec('p-0'), 0), 0);
    assert.ok(share.waitMs(spec('p-1'), 0) > 0);
  });
});
