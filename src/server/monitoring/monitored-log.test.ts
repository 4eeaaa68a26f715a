import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { it } from 'node:test';
import type { MonitoredVerdict } from '../../engine/index.ts';
import { createLog } from '../../log/index.ts';
import { parseJson } from '../../values/index.ts';
import { MAX_MONITORED_LINES, MonitoredLog } from './monitored-log.ts';

const VERDICT: MonitoredVerdict = {
  policy: 'kw.cap.p',
  uid: 'u',
  allowed: false,
  operation: 'CREATE',
  kind: 'Pod',
  namespace: 'shop',
  name: 'web',
  user: 'alice',
  isDryRun: false,
  message: 'no',
};

it('logs a bounded number of verdicts a second, and says how many are left out', () => {
  const lines: Record<string, unknown>[] = [];
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(parseJson(chunk.toString()) as Record<string, unknown>);
      done();
    },
  });
  const log = new MonitoredLog(createLog({ destination }));
  for (let count = 0; count < MAX_MONITORED_LINES + 7; count++) {
    log.write(VERDICT, 1_000);
  }
  log.write({ ...VERDICT, policy: 'kw.cap.other' }, 1_000);
  log.write({ ...VERDICT, isDryRun: true }, 2_000);
  assert.equal(lines.length, MAX_MONITORED_LINES + 2);
  const { level, msg, time: _time, ...fields } = lines[0] ?? {};
  assert.deepEqual([level, msg], ['info', 'policy evaluation (monitor mode)']);
  const { isDryRun: _isDryRun, ...named } = VERDICT;
  assert.deepEqual(fields, { ...named, mutated: false });
  assert.deepEqual([lines.at(-2)?.['policy'], lines.at(-2)?.['suppressed']], ['kw.cap.other', undefined]);
  assert.deepEqual([lines.at(-1)?.['suppressed'], lines.at(-1)?.['dryRun']], [7, true]);
});
