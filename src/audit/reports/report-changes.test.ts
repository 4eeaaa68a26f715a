import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { OpenReport } from '../../resources/index.ts';
import { MAX_REPORT_RESULTS, reportChanges, type WantedResult } from './report-changes.ts';
import { reportResult, resultDigest, resultId } from './report-result.ts';
import { storedReport, type StoredReport, summaryOfResults } from './stored-report.ts';
import { podFinding } from './testing/memory-findings.ts';

/** Reduced from the 100,000 that one policy may have. */
const MANY = 20_000;
/** A request of etcd, 1.5 MiB, less room for metadata. Bytes. */
const ETCD_LIMIT = 1_400_000;

const TIMES = { firstSeen: '2026-01-02T03:04:05Z', lastSeen: '2026-01-02T03:04:05Z' };

function wantedOf(findings: readonly ReturnType<typeof podFinding>[]): ReadonlyMap<string, WantedResult> {
  return new Map(
    findings.map((finding) => {
      const id = resultId(finding);
      return [id, { id, finding, digest: resultDigest(reportResult(finding, id, TIMES)) }];
    }),
  );
}

function written(name: string, ids: Iterable<string>, wanted: ReadonlyMap<string, WantedResult>): OpenReport {
  const results = [...ids].flatMap((id) => {
    const one = wanted.get(id);
    return one === undefined ? [] : [reportResult(one.finding, id, TIMES)];
  });
  return {
    apiVersion: 'openreports.io/v1alpha1',
    kind: 'Report',
    metadata: { name, namespace: 'default' },
    source: 'portcullis',
    summary: summaryOfResults(results),
    results,
  };
}

const stays = (): boolean => false;

it('many findings are in as few reports as hold them, and each later change is a change of one report', () => {
  const findings = Array.from({ length: MANY }, (_, index) => podFinding(`web-${index}`));
  const wanted = wantedOf(findings);
  const changes = reportChanges([], wanted, stays);
  assert.equal(changes.length, MANY / MAX_REPORT_RESULTS);
  assert.equal(new Set(changes.flatMap(({ ids }) => [...ids])).size, MANY);
  const stored: readonly StoredReport[] = changes.map(({ name, ids }) => storedReport(written(name, ids, wanted)));
  assert.deepEqual(reportChanges(stored, wanted, stays), []);
  assert.deepEqual(reportChanges(stored.toReversed(), wanted, stays), [], 'in any order of the list');
  const other = wantedOf(findings.map((one, index) => (index === 777 ? { ...one, message: 'another' } : one)));
  assert.deepEqual(
    reportChanges(stored, other, stays).map(({ name }) => name),
    ['portcullis-4'],
  );
  const moved = wantedOf([...findings.slice(1), podFinding(`web-${MANY}`)]);
  assert.deepEqual(
    reportChanges(stored, moved, stays).map(({ name }) => name),
    ['portcullis-1'],
    'a new finding takes the free place',
  );
});

it('a result that two reports have stays in the first one', () => {
  const wanted = wantedOf([podFinding('web-1')]);
  const stored = ['portcullis-10', 'portcullis-2'].map((name) => storedReport(written(name, wanted.keys(), wanted)));
  assert.deepEqual(
    reportChanges(stored, wanted, stays).map(({ name, ids }) => [name, ids.size]),
    [['portcullis-10', 0]],
  );
});

it('a report with the longest names and messages is one that etcd takes', () => {
  const long = 'x'.repeat(253);
  const findings = ['\u0001', '𝒳', 'é', '"'].flatMap((character) =>
    Array.from({ length: MAX_REPORT_RESULTS }, (_, index) =>
      podFinding(`web-${index}`, {
        policy: long,
        policyId: long,
        rule: character.repeat(10_000),
        category: character.repeat(10_000),
        message: character.repeat(100_000),
        object: { apiVersion: long, kind: long, namespace: long, name: `${long}${index}`, uid: `uid-${index}` },
      }),
    ),
  );
  for (let start = 0; start < findings.length; start += MAX_REPORT_RESULTS) {
    const wanted = wantedOf(findings.slice(start, start + MAX_REPORT_RESULTS));
    const report = written('portcullis-1', wanted.keys(), wanted);
    assert.equal(report.results?.length, MAX_REPORT_RESULTS);
    assert.ok(Buffer.byteLength(JSON.stringify(report)) < ETCD_LIMIT);
    assert.ok(report.results?.every(({ message = '' }) => message.isWellFormed() && message.endsWith('…')));
  }
});

it('a result has only the beginning of names that some status gives an object, and nothing that controls a terminal', () => {
  const long = `\u001b[2J${'x'.repeat(100_000)}`;
  const object = { apiVersion: long, kind: long, namespace: long, name: long, uid: long };
  const finding = podFinding('web-1', { policy: long, message: 'a \u001b[31mred\u202e one', object });
  const text = JSON.stringify(reportResult(finding, resultId(finding), TIMES));
  assert.ok(text.length < 6_000, String(text.length));
  assert.doesNotMatch(text, /\\u001b|\u202e/);
  const name = 'x'.repeat(253);
  assert.equal(reportResult(podFinding(name), 'id', TIMES).resources?.[0]?.name, name, 'names of Kubernetes are whole');
});
