import assert from 'node:assert/strict';
import { describe, it, mock } from 'node:test';
import type { MonitoredVerdict } from '../../engine/index.ts';
import { MAX_MONITORED_REQUESTS } from '../../resources/index.ts';
import { MAX_KEPT_REQUESTS, MONITORED_REPORT_MS, MonitoredCounts } from './monitored-counts.ts';

const NOW = Date.parse('2026-01-01T00:00:00.000Z');
const FIRST = { name: 'p-1', isMonitored: true };

function denial(rest: Partial<MonitoredVerdict> = {}): MonitoredVerdict {
  return { policy: 'p', uid: 'u', allowed: false, kind: 'Pod', name: 'web', user: '', isDryRun: false, ...rest };
}

/** Counts that report to `changed`, with a clock that stands still until it is moved. */
class Scene {
  now = NOW;
  readonly changed: (readonly string[])[] = [];
  readonly counts = new MonitoredCounts({ changed: (names) => this.changed.push(names), now: () => this.now });
}

describe('MonitoredCounts', () => {
  it('counts what the revision that serves in monitor mode would have rejected, and names the last requests', () => {
    const { counts } = new Scene();
    counts.record(denial());
    assert.equal(counts.report('p', 'p-1'), undefined, 'nothing serves yet');
    counts.serves('p', FIRST);
    for (const rest of [{ allowed: true }, { isDryRun: true }, { policy: 'other' }]) {
      counts.record(denial(rest));
    }
    assert.equal(counts.report('p', 'p-1'), undefined, 'changes and dry runs do not count');
    for (let index = 0; index < MAX_MONITORED_REQUESTS + 2; index++) {
      counts.record(denial({ name: `web-${index}` }));
    }
    const time = new Date(NOW).toISOString();
    const { since, count, last = [] } = counts.report('p', 'p-1') ?? {};
    assert.deepEqual([since, count, last.length], [time, MAX_MONITORED_REQUESTS + 2, MAX_MONITORED_REQUESTS]);
    assert.deepEqual(last[0], { time, kind: 'Pod', name: 'web-2' });
    assert.equal(counts.report('p', 'p-2'), undefined);
  });

  it('begins anew with another revision, pauses while workers change over, and goes on with the same one', () => {
    const scene = new Scene();
    const { counts } = scene;
    counts.serves('p', FIRST);
    counts.record(denial());
    counts.serves('p', undefined);
    counts.record(denial());
    counts.serves('p', FIRST);
    counts.record(denial());
    assert.equal(counts.report('p', 'p-1')?.count, 2);
    counts.serves('p', { name: 'p-2', isMonitored: false });
    counts.record(denial());
    assert.deepEqual([counts.report('p', 'p-1'), counts.report('p', 'p-2')], [undefined, undefined]);
    counts.serves('p', FIRST);
    scene.now += 1;
    counts.record(denial());
    const again = counts.report('p', 'p-1');
    assert.deepEqual([again?.count, again?.since], [1, new Date(NOW + 1).toISOString()]);
    counts.forget('p');
    counts.record(denial());
    assert.equal(counts.report('p', 'p-1'), undefined);
  });

  it('reports the first rejection soon, then all further ones at most once an interval; flush reports the rest', () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      const scene = new Scene();
      const { counts, changed } = scene;
      const pass = (ms: number): void => {
        scene.now += ms;
        mock.timers.tick(ms);
      };
      counts.serves('p', FIRST);
      counts.serves('q', { name: 'q-1', isMonitored: true });
      counts.record(denial());
      assert.deepEqual(changed, []);
      pass(1_000);
      assert.deepEqual(changed, [['p-1']]);
      for (let step = 0; step < 1_000; step++) {
        counts.record(denial());
      }
      pass(1_000);
      counts.record(denial({ policy: 'q' }));
      pass(1_000);
      assert.deepEqual(changed, [['p-1'], ['q-1']]);
      for (let waited = 0; waited < MONITORED_REPORT_MS; waited += 500) {
        pass(500);
      }
      assert.deepEqual(changed, [['p-1'], ['q-1'], ['p-1']]);
      counts.record(denial());
      counts.flush();
      assert.deepEqual(changed.at(-1), ['p-1']);
      pass(10 * MONITORED_REPORT_MS);
      assert.equal(changed.length, 4);
    } finally {
      mock.timers.reset();
    }
  });

  it('keeps a bounded number of requests: those of the policies that were the last to reject something', () => {
    const { counts } = new Scene();
    const policies = MAX_KEPT_REQUESTS / MAX_MONITORED_REQUESTS + 1;
    for (let index = 0; index < policies; index++) {
      counts.serves(`p${index}`, { name: `p${index}-1`, isMonitored: true });
      for (let request = 0; request < MAX_MONITORED_REQUESTS; request++) {
        counts.record(denial({ policy: `p${index}` }));
      }
    }
    const kept = [0, 1, policies - 1].map((index) => counts.report(`p${index}`, `p${index}-1`));
    assert.deepEqual(
      kept.map((one) => [one?.count, one?.last.length]),
      [
        [MAX_MONITORED_REQUESTS, 0],
        [MAX_MONITORED_REQUESTS, MAX_MONITORED_REQUESTS],
        [MAX_MONITORED_REQUESTS, MAX_MONITORED_REQUESTS],
      ],
    );
  });
});
