import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EmbeddedCluster } from '../apiserver/index.ts';
import { ApiError, ClusterError } from '../cluster/index.ts';
import type { Cluster } from '../cluster/index.ts';
import { pause } from './clock.ts';
import { RuntimeError } from './errors.ts';
import { LeaderElector, LEASES } from './leader-elector.ts';
import { aborted } from './runnable.ts';
import { ManualClock } from './testing/manual-clock.ts';
import { silentLog } from './testing/silent-log.ts';

const LEASE = { namespace: 'default', name: 'leader' };

/** Time that a slow API server takes for a request: less than half of the time that a leader has to renew. Milliseconds. */
const SLOW_MS = 3_000;

type CableMode = 'open' | 'refused' | 'silent' | 'slow';

/** A cluster that a test can disconnect. */
function line(cluster: Cluster, clock: ManualClock) {
  const cable = { mode: 'open' as CableMode, requests: 0 };
  const client = new Proxy(cluster, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property);
      return typeof value !== 'function'
        ? value
        : (...args: unknown[]): unknown => {
            const call = (): unknown => (value as (...all: unknown[]) => unknown).apply(target, args);
            cable.requests += 1;
            switch (cable.mode) {
              case 'refused':
                return Promise.reject(new ClusterError('unreachable', 'cut'));
              case 'silent':
                return new Promise(() => undefined);
              case 'slow':
                return pause(clock, SLOW_MS).then(() => call());
              default:
                return call();
            }
          };
    },
  });
  return { cable, client };
}

interface Contestant {
  readonly elector: LeaderElector;
  readonly cable: { mode: CableMode; requests: number };
  readonly stop: () => void;
  readonly run: Promise<void>;
  working: boolean;
}

/** Electors that compete for one Lease; a test advances the clock. */
async function contest() {
  const cluster = await EmbeddedCluster.open();
  const clock = new ManualClock();
  const contestants: Contestant[] = [];
  return {
    cluster: cluster.admin,
    clock,
    join(identity: string, work: (signal: AbortSignal) => Promise<void> = aborted): Contestant {
      const { cable, client } = line(cluster.admin, clock);
      const elector = new LeaderElector({
        cluster: client,
        ...LEASE,
        identity,
        clock,
        random: () => 0,
        log: silentLog(),
      });
      const stopping = new AbortController();
      const contestant: Contestant = {
        elector,
        cable,
        stop: () => stopping.abort(),
        working: false,
        run: elector.run(stopping.signal, async (signal) => {
          contestant.working = true;
          try {
            await work(signal);
          } finally {
            contestant.working = false;
          }
        }),
      };
      contestant.run.catch(() => undefined);
      contestants.push(contestant);
      return contestant;
    },
    /** Advances the clock, and checks that never two lead. */
    async pass(ms: number): Promise<void> {
      for (let passed = 0; passed < ms; passed += 100) {
        await clock.pass(100, 100);
        assert.ok(contestants.filter(({ working }) => working).length <= 1, 'two lead at once');
      }
    },
    lease: () => cluster.admin.get(LEASES, LEASE),
    async [Symbol.asyncDispose]() {
      for (const contestant of contestants) {
        contestant.stop();
      }
      for (let rounds = 0; rounds < 10; rounds++) {
        await clock.pass(2000, 500);
      }
      await cluster.close();
    },
  };
}

describe('LeaderElector', () => {
  it('creates a Lease, renews it, and releases it when it stops', async () => {
    await using test = await contest();
    const a = test.join('a');
    await test.pass(1000);
    assert.equal(a.working, true);
    assert.equal(a.elector.isLeader, true);
    const { spec, metadata } = await test.lease();
    assert.deepEqual([spec?.holderIdentity, spec?.leaseDurationSeconds, spec?.leaseTransitions], ['a', 15, 0]);
    assert.match(spec?.renewTime ?? '', /^2030-01-01T00:00:00\.\d{6}Z$/);
    await test.pass(10_000);
    const renewed = await test.lease();
    assert.notEqual(renewed.metadata.resourceVersion, metadata.resourceVersion);
    assert.equal(renewed.spec?.acquireTime, spec?.acquireTime);
    a.stop();
    await test.pass(100);
    await a.run;
    const released = await test.lease();
    assert.deepEqual([released.spec?.holderIdentity ?? '', released.spec?.leaseTransitions], ['', 0]);
  });

  it('lets one process lead, and the next one as soon as the Lease is released', async () => {
    await using test = await contest();
    const a = test.join('a');
    await test.pass(100);
    const b = test.join('b');
    await test.pass(60_000);
    assert.deepEqual([a.working, b.working, b.elector.holder], [true, false, 'a']);
    a.stop();
    await test.pass(3000);
    assert.deepEqual([a.working, b.working], [false, true]);
    assert.equal((await test.lease()).spec?.leaseTransitions, 1);
  });

  for (const mode of ['refused', 'silent'] as const) {
    it(`stops leading before another process leads when its cluster is ${mode}, and leads again later`, async () => {
      await using test = await contest();
      const a = test.join('a');
      await test.pass(100);
      const b = test.join('b');
      await test.pass(5000);
      a.cable.mode = mode;
      await test.pass(9000);
      assert.equal(b.working, false);
      await test.pass(12_000);
      assert.deepEqual([a.working, b.working], [false, true]);
      a.cable.mode = 'open';
      b.stop();
      await test.pass(10_000);
      assert.deepEqual([a.working, b.working], [true, false]);
    });
  }

  it('leads, and is replaced, where each request of both takes as long as a renewal may', async () => {
    await using test = await contest();
    const a = test.join('a');
    const b = test.join('b');
    [a, b].forEach(({ cable }) => (cable.mode = 'slow'));
    await test.pass(20_000);
    const [leader, other] = a.working ? [a, b] : [b, a];
    assert.deepEqual([leader.working, other.working], [true, false]);
    await test.pass(60_000);
    assert.equal(leader.working, true);
    leader.cable.mode = 'refused';
    await test.pass(40_000);
    assert.deepEqual([leader.working, other.working], [false, true]);
  });

  it('keeps leading through an outage shorter than its deadline', async () => {
    await using test = await contest();
    const a = test.join('a');
    const b = test.join('b');
    await test.pass(5000);
    const leader = a.working ? a : b;
    leader.cable.mode = 'silent';
    await test.pass(4500);
    leader.cable.mode = 'open';
    await test.pass(20_000);
    assert.equal(leader.working, true);
    assert.equal((await test.lease()).spec?.leaseTransitions, 0);
  });

  it('works with wrong clocks: waits for as long as it saw the Lease unchanged', async () => {
    await using test = await contest();
    // Renew times in the future and in the past of every clock here.
    for (const [name, renewTime] of [
      ['leader', '2099-01-01T00:00:00.000000Z'],
      ['leader', '1999-01-01T00:00:00.000000Z'],
    ] as const) {
      const spec = { holderIdentity: 'gone', leaseDurationSeconds: 20, renewTime, leaseTransitions: 4 };
      await test.cluster.create(LEASES, {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { namespace: 'default', name },
        spec,
      });
      const a = test.join(renewTime);
      await test.pass(19_000);
      assert.equal(a.working, false);
      await test.pass(4000);
      assert.equal(a.working, true);
      assert.equal((await test.lease()).spec?.leaseTransitions, 5);
      a.stop();
      await test.pass(200);
      await test.cluster.delete(LEASES, LEASE);
    }
  });

  it('elects one of many that start at once', async () => {
    await using test = await contest();
    const all = ['a', 'b', 'c', 'd', 'e'].map((identity) => test.join(identity));
    await test.pass(5000);
    assert.equal(all.filter(({ working }) => working).length, 1);
  });

  it('stops leading when another process took the Lease', async () => {
    await using test = await contest();
    const a = test.join('a');
    await test.pass(1000);
    const lease = await test.lease();
    await test.cluster.update(LEASES, { ...lease, spec: { ...lease.spec, holderIdentity: 'usurper' } });
    await test.pass(2500);
    assert.equal(a.working, false);
    assert.equal(a.elector.isLeader, false);
  });

  it('keeps leading when the Lease’s metadata changes or the Lease is deleted', async () => {
    await using test = await contest();
    const a = test.join('a');
    await test.pass(1000);
    const lease = await test.lease();
    await test.cluster.update(LEASES, { ...lease, metadata: { ...lease.metadata, labels: { team: 'x' } } });
    await test.pass(5000);
    assert.equal(a.working, true);
    assert.deepEqual((await test.lease()).metadata.labels, { team: 'x' });
    await test.cluster.delete(LEASES, LEASE);
    await test.pass(5000);
    assert.equal(a.working, true);
    assert.equal((await test.lease()).spec?.holderIdentity, 'a');
  });

  it('waits for an unreachable leader when its Lease is deleted', async () => {
    await using test = await contest();
    const a = test.join('a');
    await test.pass(1000);
    const b = test.join('b');
    await test.pass(3000);
    a.cable.mode = 'silent';
    await test.cluster.delete(LEASES, LEASE);
    await test.pass(9000);
    assert.equal(b.working, false);
    await test.pass(10_000);
    assert.equal(b.working, true);
  });

  it('does not take a change of the Lease’s metadata for a renewal', async () => {
    await using test = await contest();
    const a = test.join('a');
    await test.pass(1000);
    const b = test.join('b');
    a.cable.mode = 'silent';
    for (let round = 0; round < 5; round++) {
      await test.pass(4000);
      const body = { metadata: { labels: { round: String(round) } } };
      await test.cluster.patch(LEASES, LEASE, { type: 'merge', body });
    }
    await test.pass(1000);
    assert.equal(b.working, true);
  });

  it('keeps the Lease while its work ends', async () => {
    await using test = await contest();
    const gate = Promise.withResolvers<void>();
    const a = test.join('a', () => gate.promise);
    await test.pass(100);
    const b = test.join('b');
    a.stop();
    await test.pass(40_000);
    assert.deepEqual([a.working, b.working], [true, false]);
    gate.resolve();
    await test.pass(3000);
    assert.deepEqual([a.working, b.working], [false, true]);
  });

  it('fails when its work continues after leadership was lost', async () => {
    await using test = await contest();
    const a = test.join('a', () => new Promise(() => undefined));
    await test.pass(100);
    a.cable.mode = 'refused';
    await test.clock.pass(20_000);
    await assert.rejects(a.run, (error) => error instanceof RuntimeError && error.code === 'leadership-lost');
  });

  it('releases the Lease and fails when its work fails', async () => {
    await using test = await contest();
    const a = test.join('a', () => Promise.reject(new Error('no work')));
    await test.pass(1000);
    await assert.rejects(a.run, /no work/);
    assert.equal((await test.lease()).spec?.holderIdentity ?? '', '');
  });

  it('waits while it may not write, and leads when it may', async () => {
    await using test = await contest();
    const refusing = new Proxy(test.cluster, {
      get: (target, property) =>
        property === 'create' && isForbidden
          ? () => Promise.reject(new ApiError(403, 'Forbidden', 'leases is forbidden'))
          : (Reflect.get(target, property) as () => void).bind(target),
    });
    let isForbidden = true;
    const elector = new LeaderElector({ cluster: refusing, ...LEASE, clock: test.clock, log: silentLog() });
    const stop = new AbortController();
    const run = elector.run(stop.signal, aborted);
    await test.pass(20_000);
    assert.equal(elector.isLeader, false);
    isForbidden = false;
    await test.pass(5000);
    assert.equal(elector.isLeader, true);
    stop.abort();
    await test.pass(100);
    await run;
  });

  it('rejects durations that would let two processes lead', async () => {
    await using test = await contest();
    const build = (durations: object) => () =>
      new LeaderElector({ cluster: test.cluster, ...LEASE, log: silentLog(), ...durations });
    assert.throws(
      build({ leaseDurationMs: 10_000 }),
      /leaseDurationMs: expected at least 1000 and more than renewDeadlineMs \(10000\), got 10000/,
    );
    assert.throws(build({ retryPeriodMs: 9000 }), /renewDeadlineMs: expected more than 1.2 times retryPeriodMs/);
    assert.match(build({})().identity, /.+_[0-9a-f-]{36}$/);
  });
});
