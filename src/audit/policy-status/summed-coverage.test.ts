import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Coverage, NO_COUNTS } from '../coverage.ts';
import type { KindSummary } from './member-summary.ts';
import { summedCoverage } from './summed-coverage.ts';

const kind = { group: '', version: 'v1', resource: 'pods', kind: 'Pod', namespaced: true };
const own: Coverage = {
  policy: 'cap/p',
  kind,
  state: 'Scanned',
  counts: { ...NO_COUNTS, scanned: 3, matched: 3, failed: 1, passed: 2 },
  scannedAt: '2026-01-01T00:00:02.000Z',
};
const other: KindSummary = {
  state: 'Scanned',
  counts: { ...NO_COUNTS, scanned: 5, matched: 4, failed: 4 },
  unlisted: 0,
  scannedAt: '2026-01-01T00:00:01.000Z',
};

describe('the coverage of several auditors', () => {
  it('is the sum of counts, as of the earliest scan', () => {
    assert.deepEqual(summedCoverage(own, [other, other]), {
      ...own,
      counts: { ...NO_COUNTS, scanned: 13, matched: 11, failed: 9, passed: 2 },
      scannedAt: other.scannedAt,
    });
  });

  it('is pending as long as one has not judged its share, or said so', () => {
    const { scannedAt: _at, ...unscanned } = other;
    const pending = { state: 'Pending', reason: 'NotScanned' };
    for (const [mine, parts] of [
      [own, ['unknown', other]],
      [own, [{ ...unscanned, state: 'Pending' }, other]],
      [{ ...own, state: 'Pending', scannedAt: undefined }, [other, other]],
    ] as unknown as [Coverage, (KindSummary | 'unknown')[]][]) {
      const { state, reason, message, scannedAt } = summedCoverage(mine, parts);
      assert.deepEqual({ state, reason }, pending);
      assert.equal(message, '1 of 3 auditors have yet to judge the objects of their namespaces');
      assert.equal(scannedAt, undefined);
    }
  });

  it('is partial where policies gave no verdicts, or were left out', () => {
    const unjudged = { ...other, counts: { ...other.counts, unjudged: 2 } };
    assert.deepEqual(
      ['state', 'reason', 'message'].map((name) => summedCoverage(own, [unjudged])[name as 'state']),
      ['Partial', 'NotJudged', 'the policy gave no verdict on 2 of 7 objects'],
    );
    assert.equal(summedCoverage(own, ['omitted']).reason, 'NotSummed');
  });

  it('is failed where another auditor fails', () => {
    assert.equal(summedCoverage(own, [{ ...other, state: 'Failed' }]).state, 'Failed');
  });

  it('is that of this auditor where it is the same for all', () => {
    const forbidden: Coverage = { ...own, state: 'Forbidden', reason: 'Forbidden' };
    assert.equal(summedCoverage(forbidden, ['unknown']), forbidden);
  });

  it('has the number of findings that are counted only', () => {
    assert.equal(summedCoverage({ ...own, unlisted: 2 }, [{ ...other, unlisted: 3 }]).unlisted, 5);
  });
});
