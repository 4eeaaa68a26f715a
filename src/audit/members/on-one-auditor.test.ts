import assert from 'node:assert/strict';
import { it } from 'node:test';
import { aborted } from '../../runtime/index.ts';
import { until } from '../testing/until.ts';
import type { AuditShare, ShareChange } from './audit-share.ts';
import { onOneAuditor } from './on-one-auditor.ts';

it('what one auditor does for the whole cluster runs while this one may write, again and again, and ends with it', async () => {
  const listeners = new Set<(change: ShareChange) => void>();
  let writes = false;
  const share: AuditShare = {
    isOwn: () => true,
    mayWrite: () => writes,
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  const set = (now: boolean): void => {
    writes = now;
    listeners.forEach((listener) => listener('writing'));
  };
  let [starts, running] = [0, 0];
  const stop = new AbortController();
  const shared = onOneAuditor(share, {
    name: 'work',
    start: async (signal) => {
      starts += 1;
      running += 1;
      await aborted(signal);
      running -= 1;
    },
  });
  const ended = shared.start(stop.signal);
  assert.deepEqual([starts, running], [0, 0]);
  set(true);
  await until(() => running === 1);
  set(false);
  await until(() => running === 0);
  set(true);
  await until(() => running === 1);
  assert.equal(starts, 2);
  stop.abort();
  await ended;
  assert.deepEqual([running, listeners.size], [0, 0]);
});
