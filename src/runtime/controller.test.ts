import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Registry } from 'prom-client';
import { keyText } from '../resources/index.ts';
import type { KubernetesObject, ObjectKey } from '../resources/index.ts';
import { Controller } from './controller.ts';
import type { ControllerOptions } from './controller.ts';
import { RuntimeMetrics } from './metrics.ts';
import { ObjectStore } from './object-store.ts';
import { Stalled, Waiting } from './reconcile-outcome.ts';
import { ManualClock, settle } from './testing/manual-clock.ts';
import { keptLog, silentLog } from './testing/silent-log.ts';
import { annotationsChanged, anyOf, generationChanged, watch } from './watch.ts';
import type { WatchMapping } from './watch.ts';

let versions = 0;

function object(name: string, metadata: Partial<KubernetesObject['metadata']> = {}): KubernetesObject {
  versions += 1;
  return {
    apiVersion: 'v1',
    kind: 'Thing',
    metadata: { namespace: 'x', name, uid: name, generation: 1, resourceVersion: String(versions), ...metadata },
  };
}

/** A cache that a test fills. */
function testCache(...objects: KubernetesObject[]) {
  const store = new ObjectStore();
  store.replace(objects);
  const { promise: synced, resolve: sync } = Promise.withResolvers<void>();
  return { name: 'things', store, synced, sync, subscribe: store.subscribe.bind(store) };
}

/** A controller that runs until the test ends. */
function running(options: Partial<ControllerOptions> & Pick<ControllerOptions, 'reconcile'>) {
  const clock = new ManualClock();
  const controller = new Controller({ name: 'test', watches: [], log: silentLog(), clock, ...options });
  const stop = new AbortController();
  const ended = controller.start(stop.signal);
  return {
    clock,
    controller,
    ended,
    stop: () => stop.abort(),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await ended;
    },
  };
}

describe('Controller', () => {
  it('reconciles existing objects once its caches are synced, then changes', async () => {
    const cache = testCache(object('a'), object('b'));
    const seen: string[] = [];
    await using test = running({ watches: [watch(cache)], reconcile: (key) => void seen.push(keyText(key)) });
    await settle();
    assert.deepEqual(seen, []);
    cache.sync();
    await test.controller.ready;
    await settle();
    assert.deepEqual(seen, ['x/a', 'x/b']);
    cache.store.apply({ type: 'MODIFIED', object: object('b') });
    cache.store.apply({ type: 'DELETED', object: object('a') });
    test.controller.enqueue({ name: 'cluster-scoped' });
    await settle();
    assert.deepEqual(seen.slice(2), ['x/b', 'x/a', 'cluster-scoped']);
  });

  it('reconciles changes before objects of the first list', async () => {
    const cache = testCache(object('old'), object('older'));
    cache.sync();
    const seen: string[] = [];
    const first = Promise.withResolvers<void>();
    await using _ = running({
      watches: [watch(cache)],
      async reconcile({ name }) {
        seen.push(name);
        await first.promise;
      },
    });
    await settle();
    cache.store.apply({ type: 'ADDED', object: object('new') });
    first.resolve();
    await settle();
    assert.deepEqual(seen, ['old', 'new', 'older']);
  });

  it('retries failures with backoff, resets the backoff after a success, and waits as requested', async () => {
    const calls: string[] = [];
    const outcomes: (() => { requeueAfterMs: number } | undefined)[] = [
      () => {
        throw new Error('once');
      },
      () => {
        throw new Error('twice');
      },
      () => undefined,
      () => {
        throw new Waiting('Pending', 500);
      },
      () => ({ requeueAfterMs: 300 }),
      () => {
        throw new Stalled('Broken', 'act');
      },
    ];
    await using test = running({
      reconcile() {
        calls.push(String(test.clock.now()));
        return outcomes.shift()?.();
      },
      retries: { baseMs: 100, rate: { perSecond: 1e9, burst: 1e9 } },
    });
    await settle();
    test.controller.enqueue({ name: 'a' });
    await test.clock.pass(5000, 1);
    assert.equal(calls.length, 3);
    assert.ok(Number(calls[1]) <= 101 && Number(calls[2]) - Number(calls[1]) > 100, calls.join());
    const now = test.clock.now();
    test.controller.enqueue({ name: 'a' });
    await test.clock.pass(5000, 1);
    assert.deepEqual(
      calls.slice(3).map((at) => Number(at) - now),
      [0, 500, 800],
    );
  });

  it('reconciles a key once at a time, and several keys up to its concurrency', async () => {
    const active = new Set<string>();
    let most = 0;
    let calls = 0;
    const gate = Promise.withResolvers<void>();
    await using test = running({
      concurrency: 3,
      async reconcile(key) {
        calls += 1;
        assert.ok(!active.has(key.name));
        active.add(key.name);
        most = Math.max(most, active.size);
        await gate.promise;
        active.delete(key.name);
      },
    });
    await settle();
    for (const name of ['a', 'b', 'a', 'c', 'd', 'e', 'a']) {
      test.controller.enqueue({ name });
    }
    await settle();
    test.controller.enqueue({ name: 'a' });
    gate.resolve();
    await settle();
    assert.equal(most, 3);
    assert.equal(calls, 6);
  });

  it('lets namespaces take turns', async () => {
    const seen: string[] = [];
    await using test = running({ reconcile: (key) => void seen.push(keyText(key)) });
    await settle();
    for (const key of ['many/a', 'many/b', 'many/c', 'few/a', 'few/b']) {
      const [namespace = '', name = ''] = key.split('/');
      test.controller.enqueue({ namespace, name });
    }
    await settle();
    assert.deepEqual(seen, ['many/a', 'many/b', 'few/a', 'many/c', 'few/b']);
  });

  it('survives errors of reconcilers, key mappers and event sinks', async () => {
    const cache = testCache();
    cache.sync();
    const { log, lines } = keptLog();
    const seen: string[] = [];
    await using _ = running({
      log,
      watches: [
        watch(cache, {
          when: [
            () => {
              throw new Error('no predicate');
            },
          ],
        }),
        watch(cache, {
          keys: () => {
            throw new Error('no mapping');
          },
        }),
      ],
      reconcile({ name }) {
        seen.push(name);
        throw name === 'bad' ? new TypeError('undefined is not a function') : new Stalled('Nothing', 'here');
      },
      events: {
        of: () => object('a'),
        sink: {
          event: () => {
            throw new Error('no event');
          },
        },
      },
    });
    await settle();
    cache.store.apply({ type: 'ADDED', object: object('bad') });
    cache.store.apply({ type: 'ADDED', object: object('good') });
    await settle();
    assert.deepEqual(seen, ['bad', 'good']);
    const messages = new Set(lines.map(({ msg }) => msg));
    assert.ok(messages.has('a change could not be mapped to keys'));
    assert.ok(messages.has('reconciliation failed'));
    assert.ok(messages.has('the outcome of a reconciliation could not be reported'));
  });

  it('writes events about failures', async () => {
    const events: string[] = [];
    await using test = running({
      reconcile() {
        throw new Stalled('Broken', 'expected a module');
      },
      events: {
        of: ({ name }: ObjectKey) => (name === 'gone' ? undefined : object(name)),
        sink: { event: (about, ...event) => void events.push([about.metadata.name, ...event].join(' ')) },
      },
    });
    await settle();
    test.controller.enqueue({ name: 'a' });
    test.controller.enqueue({ name: 'gone' });
    await settle();
    assert.deepEqual(events, ['a Warning Broken expected a module']);
  });

  it('aborts a reconciliation that takes too long, and retries it', async () => {
    let calls = 0;
    await using test = running({
      timeoutMs: 1000,
      reconcile(_, signal) {
        calls += 1;
        return calls > 1
          ? undefined
          : new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
      },
    });
    await settle();
    test.controller.enqueue({ name: 'a' });
    await test.clock.pass(1500);
    assert.equal(calls, 2);
    // The timer of a finished reconciliation is cancelled.
    assert.equal(test.clock.pending, 0);
  });

  it('gives each attempt the failures in a row before it, and a signal that no timeout aborts', async () => {
    const seen: (readonly [failures: number, isTooLong: boolean, isStopped: boolean])[] = [];
    await using test = running({
      timeoutMs: 1000,
      async reconcile(_, signal, { failures, stopped }) {
        if (failures === 1) {
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
        }
        seen.push([failures, signal.aborted, stopped.aborted]);
        if (seen.length < 3) {
          throw new Error('not yet');
        }
      },
    });
    await settle();
    test.controller.enqueue({ name: 'a' });
    await test.clock.pass(2000);
    test.controller.enqueue({ name: 'a' });
    await test.clock.pass(0);
    assert.deepEqual(seen, [
      [0, false, false],
      [1, true, false],
      [2, false, false],
      [0, false, false],
    ]);
  });

  it('stops after running reconciliations, without the queued ones', async () => {
    const gate = Promise.withResolvers<void>();
    const seen: string[] = [];
    let isAborted = false;
    const test = running({
      async reconcile({ name }, signal) {
        seen.push(name);
        await gate.promise;
        isAborted = signal.aborted;
      },
    });
    await settle();
    test.controller.enqueue({ name: 'a' });
    test.controller.enqueue({ name: 'b' });
    await settle();
    test.stop();
    let isEnded = false;
    void test.ended.then(() => (isEnded = true));
    await settle();
    assert.equal(isEnded, false);
    gate.resolve();
    await test.ended;
    assert.deepEqual(seen, ['a']);
    assert.equal(isAborted, true);
  });

  it('can be started again', async () => {
    const cache = testCache(object('a'));
    cache.sync();
    const seen: string[] = [];
    const controller = new Controller({
      name: 'test',
      log: silentLog(),
      watches: [watch(cache)],
      reconcile: ({ name }) => void seen.push(name),
    });
    for (let times = 0; times < 2; times++) {
      const stop = new AbortController();
      const ended = controller.start(stop.signal);
      await settle();
      stop.abort();
      await ended;
    }
    cache.store.apply({ type: 'ADDED', object: object('after the end') });
    assert.deepEqual(seen, ['a', 'a']);
  });

  it('updates metrics', async () => {
    const registry = new Registry();
    const metrics = new RuntimeMetrics(registry);
    await using test = running({
      metrics,
      concurrency: 2,
      reconcile({ name }) {
        if (name === 'bad') {
          throw new Error('bad');
        }
      },
    });
    await settle();
    test.controller.enqueue({ name: 'bad' });
    test.controller.enqueue({ name: 'good' });
    await settle();
    const text = await registry.metrics();
    for (const line of [
      'controller_runtime_reconcile_total{controller="test",result="success"} 1',
      'controller_runtime_reconcile_total{controller="test",result="failed"} 1',
      'controller_runtime_reconcile_errors_total{controller="test"} 1',
      'controller_runtime_max_concurrent_reconciles{controller="test"} 2',
      'controller_runtime_active_workers{controller="test"} 0',
      'workqueue_adds_total{name="test"} 3',
      'workqueue_retries_total{name="test"} 1',
      'workqueue_delayed{name="test"} 1',
      'workqueue_depth{name="test"} 0',
      'workqueue_queue_duration_seconds_count{name="test"} 2',
      'workqueue_work_duration_seconds_count{name="test"} 2',
      'workqueue_longest_running_processor_seconds{name="test"} 0',
    ]) {
      assert.ok(text.includes(`${line}\n`), `${line} is not in\n${text}`);
    }
  });
});

describe('watch', () => {
  const followed = (options: WatchMapping<KubernetesObject>, ...events: [string, KubernetesObject][]): string[] => {
    const cache = testCache(object('first'));
    const keys: string[] = [];
    watch(cache, options).connect(
      (key) => keys.push(keyText(key)),
      (error) => assert.fail(String(error)),
    );
    keys.length = 0;
    for (const [type, changed] of events) {
      cache.store.apply({ type, object: changed });
    }
    return keys;
  };

  it('ignores changes of metadata and status with generationChanged', () => {
    const when = [generationChanged];
    assert.deepEqual(followed({ when }, ['MODIFIED', object('first', { labels: { a: 'b' } })]), []);
    assert.deepEqual(followed({ when }, ['MODIFIED', object('first', { generation: 2 })]), ['x/first']);
    const deleted = object('first', { deletionTimestamp: '2030-01-01T00:00:00Z' });
    assert.deepEqual(followed({ when }, ['MODIFIED', deleted]), ['x/first']);
    assert.deepEqual(followed({ when }, ['DELETED', object('first')]), ['x/first']);
    const either = [anyOf(generationChanged, annotationsChanged)];
    assert.equal(followed({ when: either }, ['MODIFIED', object('first', { annotations: { a: 'b' } })]).length, 1);
  });

  it('maps an object to its current and its former keys', () => {
    const owned = (name: string) =>
      object('pod', { ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name, uid: name }] });
    const keys = ({ metadata }: KubernetesObject) =>
      (metadata.ownerReferences ?? []).map(({ name }) => ({ namespace: 'x', name }));
    assert.deepEqual(followed({ keys }, ['ADDED', owned('one')], ['MODIFIED', owned('two')]), [
      'x/one',
      'x/one',
      'x/two',
    ]);
  });
});
