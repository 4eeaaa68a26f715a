// 100,000 findings of one policy, written to an API server and followed.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { MAX_REPORT_RESULTS } from './report-changes.ts';
import { podFinding } from './testing/memory-findings.ts';
import { ReportScene } from './testing/report-scene.ts';

const MANY = 100_000;
const REPORTS = MANY / MAX_REPORT_RESULTS;
/** Of a writer, without the findings: ids and digests, where a result itself has 700 bytes. */
const MAX_BYTES_PER_FINDING = 1_500;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function heapBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

it('100,000 findings are chunked, written on change only, and held as digests', { timeout: 600_000 }, async () => {
  await using scene = await ReportScene.open();
  const findings = Array.from({ length: MANY }, (_, index) => podFinding(`web-${index}`));
  await scene.start();
  scene.findings.set(findings);
  await scene.quiet();
  assert.equal(scene.writes.length, REPORTS);
  assert.ok(scene.writes.every((write) => write.startsWith('create ')));
  const stored = await scene.reports();
  assert.deepEqual(
    [stored.length, Math.max(...stored.map(({ results = [] }) => results.length))],
    [REPORTS, MAX_REPORT_RESULTS],
  );
  scene.writes = [];
  scene.findings.set(findings.with(77_777, podFinding('web-77777', { message: 'another' })));
  await scene.quiet();
  assert.equal(scene.writes.length, 1);
  scene.findings.set(findings);
  await scene.quiet();
  await scene.stop();
  const before = heapBytes();
  await scene.start();
  scene.findings.changed('default');
  await scene.quiet();
  assert.deepEqual(scene.writes, [], 'after a restart');
  const bytes = (heapBytes() - before) / MANY;
  assert.ok(bytes > 0 && bytes < MAX_BYTES_PER_FINDING, `${bytes} bytes for each finding`);
  scene.findings.policies = new Set();
  scene.findings.set([]);
  await scene.quiet();
  assert.deepEqual([scene.writes.length, (await scene.reports()).length], [REPORTS, 0]);
});
