import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { NO_COUNTS } from '../coverage.ts';
import { MAX_SUMMARY, policyKey, type PolicySummary, readSummary, summaryText } from './member-summary.ts';

function policies(count: number, findings: number): ReadonlyMap<string, PolicySummary> {
  return new Map(
    Array.from({ length: count }, (_, index) => [
      policyKey(randomUUID(), 1),
      {
        kinds: new Map([
          [
            '/v1/pods',
            {
              state: 'Scanned',
              scannedAt: '2026-01-01T00:00:00.000Z',
              counts: { ...NO_COUNTS, failed: index },
              unlisted: 1,
            },
          ],
          ['apps/v1/deployments', { state: 'Pending', counts: NO_COUNTS, unlisted: 0 }],
        ]),
        newest: Array.from({ length: findings }, (_one, number) => ({
          result: 'fail' as const,
          object: { apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name: `web-${number}` },
          objectVersion: String(number),
          message: `no ${randomUUID()}`,
        })),
      },
    ]),
  );
}

describe('the summary of an auditor', () => {
  it('is read as it was written', () => {
    const written = policies(20, 10);
    assert.deepEqual(readSummary(summaryText({ members: 'a,b', policies: written })), {
      members: 'a,b',
      omitted: 0,
      policies: written,
    });
  });

  it('leaves out older findings before policies, and says how many policies', () => {
    const many = summaryText({ members: 'a,b', policies: policies(500, 10) });
    assert.ok(many.length <= MAX_SUMMARY);
    const read = readSummary(many);
    assert.ok(read !== undefined);
    assert.deepEqual([read.omitted, read.policies.size], [0, 500]);
    assert.ok(read.policies.values().every(({ newest }) => newest.length > 0 && newest.length < 10));
    const tooMany = summaryText({ members: 'a,b', policies: policies(8_000, 10) });
    assert.ok(tooMany.length <= MAX_SUMMARY);
    const part = readSummary(tooMany);
    assert.ok(part !== undefined && part.omitted > 0);
    assert.equal(part.policies.size + part.omitted, 8_000);
  });

  it('differs by the generation of the policy', () => {
    assert.notEqual(policyKey('uid', 1), policyKey('uid', 2));
  });

  const packed = (value: unknown): string => gzipSync(JSON.stringify(value)).toString('base64');
  for (const [what, text] of [
    ['nothing', ''],
    ['another text', 'hello'],
    ['another value', packed({ members: 'a' })],
    ['counts that are none', packed(['a', 0, { key: [{ '/v1/pods': ['Scanned', '', 'x'] }, []] }])],
    ['a text that would grow too large', gzipSync(Buffer.alloc(2 ** 23)).toString('base64')],
  ] as const) {
    it(`is none if it is ${what}`, () => {
      assert.equal(readSummary(text), undefined);
    });
  }
});
