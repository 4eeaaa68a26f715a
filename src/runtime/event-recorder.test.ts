import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Registry } from 'prom-client';
import { EmbeddedCluster } from '../apiserver/index.ts';
import { ApiError, ClusterError } from '../cluster/index.ts';
import type { Cluster } from '../cluster/index.ts';
import { EventRecorder, EVENTS, MAX_PENDING_EVENTS } from './event-recorder.ts';
import { RuntimeMetrics } from './metrics.ts';
import { ManualClock, settle } from './testing/manual-clock.ts';
import { silentLog } from './testing/silent-log.ts';

const pod = (name: string, namespace: string | undefined = 'default') => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, uid: `uid-${name}`, ...(namespace === undefined ? {} : { namespace }) },
});

/** A recorder on a cluster whose writes can be intercepted. */
async function recording(intercept?: (verb: string) => Promise<never> | undefined) {
  const cluster = await EmbeddedCluster.open();
  const verbs: string[] = [];
  const client = new Proxy(cluster.admin, {
    get: (target, property: keyof Cluster) =>
      property === 'discovery'
        ? target.discovery
        : (...args: unknown[]): unknown => {
            verbs.push(property);
            return intercept?.(property) ?? (target[property] as (...all: unknown[]) => unknown).apply(target, args);
          },
  });
  const clock = new ManualClock();
  const registry = new Registry();
  const metrics = new RuntimeMetrics(registry);
  const recorder = new EventRecorder({ cluster: client, component: 'portcullis', clock, log: silentLog(), metrics });
  const stop = new AbortController();
  let run: Promise<void> | undefined;
  return {
    recorder,
    clock,
    verbs,
    cluster: cluster.admin,
    start: () => (run ??= recorder.start(stop.signal)),
    stop: () => stop.abort(),
    events: async (namespace = 'default') => (await cluster.admin.list(EVENTS, { namespace })).items,
    counted: async (result: string) =>
      (await registry.getSingleMetric('portcullis_events_total')!.get()).values.find(
        ({ labels }) => labels.result === result,
      )?.value ?? 0,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await run;
      await cluster.close();
    },
  };
}

describe('EventRecorder', () => {
  it('writes the fields that kubectl describe reads', async () => {
    await using test = await recording();
    void test.start();
    test.recorder.event(pod('web'), 'Warning', 'ModuleInvalid', 'expected WebAssembly');
    await test.clock.pass(100);
    const [event, ...others] = await test.events();
    assert.equal(others.length, 0);
    assert.match(event!.metadata.name ?? '', /^web\.[0-9a-f]{16}$/);
    const { involvedObject, reason, message, type, count, firstTimestamp, source, reportingComponent } = event!;
    assert.deepEqual(involvedObject, {
      apiVersion: 'v1',
      kind: 'Pod',
      namespace: 'default',
      name: 'web',
      uid: 'uid-web',
    });
    assert.deepEqual([reason, message, type, count], ['ModuleInvalid', 'expected WebAssembly', 'Warning', 1]);
    assert.deepEqual(
      [firstTimestamp, source, reportingComponent],
      ['2030-01-01T00:00:00Z', { component: 'portcullis' }, 'portcullis'],
    );
  });

  it('counts repeats in the existing event', async () => {
    await using test = await recording();
    void test.start();
    for (let times = 0; times < 3; times++) {
      test.recorder.event(pod('web'), 'Normal', 'Serving', 'all replicas');
      test.recorder.event(pod('web'), 'Normal', 'Serving', 'all replicas');
      await test.clock.pass(2000);
    }
    const events = await test.events();
    assert.deepEqual(
      events.map(({ count }) => count),
      [6],
    );
    assert.deepEqual(
      [events[0]?.firstTimestamp, events[0]?.lastTimestamp],
      ['2030-01-01T00:00:00Z', '2030-01-01T00:00:04Z'],
    );
  });

  it('creates an event again that no longer exists', async () => {
    await using test = await recording();
    void test.start();
    test.recorder.event(pod('web'), 'Normal', 'Serving', 'all replicas');
    await test.clock.pass(100);
    await test.cluster.deleteCollection(EVENTS, { namespace: 'default' });
    test.recorder.event(pod('web'), 'Normal', 'Serving', 'all replicas');
    await test.clock.pass(100);
    assert.deepEqual(
      (await test.events()).map(({ count }) => count),
      [2],
    );
  });

  it('accepts cluster-scoped objects and names that are invalid for events', async () => {
    await using test = await recording();
    void test.start();
    test.recorder.event(pod('policy', undefined), 'Normal', 'A', 'x');
    test.recorder.event(pod(`System:Node-.${'x'.repeat(250)}`), 'Normal', 'A', 'x');
    test.recorder.event(pod(':::'), 'Normal', 'A', 'x');
    await test.clock.pass(100);
    const names = (await test.events()).map(({ metadata }) => metadata.name ?? '').sort();
    assert.equal(names.length, 3);
    assert.match(names[0]!, /^event\./);
    assert.match(names[2]!, /^system-node\.x+\.[0-9a-f]{16}$/);
    assert.equal(names[2]?.length, 252);
  });

  it('retries while the cluster is unavailable', async () => {
    let failures = 2;
    await using test = await recording(() =>
      failures-- > 0 ? Promise.reject(new ClusterError('unreachable', 'away')) : undefined,
    );
    void test.start();
    test.recorder.event(pod('web'), 'Normal', 'A', 'x');
    await test.clock.pass(2500);
    assert.equal((await test.events()).length, 0);
    await test.clock.pass(1000);
    assert.equal((await test.events()).length, 1);
  });

  it('does not retry an event that the cluster rejects', async () => {
    let isFirst = true;
    await using test = await recording(() => {
      const refusal = isFirst
        ? Promise.reject(new ApiError(403, 'Forbidden', 'namespace is being terminated'))
        : undefined;
      isFirst = false;
      return refusal;
    });
    void test.start();
    test.recorder.event(pod('a'), 'Normal', 'A', 'x');
    test.recorder.event(pod('b'), 'Normal', 'A', 'x');
    await test.clock.pass(500);
    assert.deepEqual(test.verbs, ['create', 'create']);
    assert.equal((await test.events()).length, 1);
    assert.equal(await test.counted('failed'), 1);
  });

  it('never blocks, and limits pending events', async () => {
    await using test = await recording(() => new Promise(() => undefined));
    void test.start();
    for (let number = 0; number < MAX_PENDING_EVENTS + 50; number++) {
      test.recorder.event(pod(`pod-${number}`), 'Normal', 'A', 'x');
    }
    assert.ok((await test.counted('dropped')) >= 49);
    test.stop();
    await test.clock.pass(30_000, 1000);
  });

  it('writes pending events before it stops', async () => {
    await using test = await recording();
    test.recorder.event(pod('early'), 'Normal', 'A', 'x');
    const run = test.start();
    test.recorder.event(pod('late'), 'Normal', 'A', 'x');
    test.stop();
    await run;
    assert.equal((await test.events()).length, 2);
    test.recorder.event(pod('later'), 'Normal', 'A', 'x');
    await settle();
    assert.equal((await test.events()).length, 2);
  });

  it('never throws', async () => {
    await using test = await recording();
    test.recorder.event(undefined as never, 'Normal', 'A', 'x');
    test.recorder.event(pod('a'), 'Normal', undefined as never, 'x');
  });
});
