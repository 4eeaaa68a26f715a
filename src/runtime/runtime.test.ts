import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EmbeddedCluster } from '../apiserver/index.ts';
import { LeaderElector, LEASES } from './leader-elector.ts';
import { aborted } from './runnable.ts';
import type { Runnable } from './runnable.ts';
import { Runtime } from './runtime.ts';
import { ManualClock, settle } from './testing/manual-clock.ts';
import { silentLog } from './testing/silent-log.ts';

/** Runnables that record when they start and stop. */
function recorded() {
  const seen: string[] = [];
  const make = (name: string, options: { ready?: Promise<void>; stopped?: Promise<void> } = {}): Runnable => ({
    name,
    ...(options.ready === undefined ? {} : { ready: options.ready }),
    async start(signal) {
      seen.push(`+${name}`);
      await aborted(signal);
      await options.stopped;
      seen.push(`-${name}`);
    },
  });
  return { seen, make };
}

function runtime(options: Partial<ConstructorParameters<typeof Runtime>[0]> = {}): Runtime {
  return new Runtime({ log: silentLog(), ...options });
}

describe('Runtime', () => {
  it('starts group after group when they are ready, and stops them in reverse', async () => {
    const { seen, make } = recorded();
    const synced = Promise.withResolvers<void>();
    const subject = runtime()
      .add('leader', make('controller'))
      .add('server', make('webhook'))
      .add('cache', make('pods', { ready: synced.promise }), make('nodes'));
    assert.equal(subject.notReady(), 'not started');
    const stop = new AbortController();
    const run = subject.run(stop.signal);
    await settle();
    assert.deepEqual(seen, ['+pods', '+nodes']);
    assert.equal(subject.notReady(), 'waiting for webhook, pods');
    synced.resolve();
    await settle();
    assert.deepEqual(seen.slice(2), ['+webhook', '+controller']);
    assert.equal(subject.notReady(), undefined);
    assert.deepEqual(
      subject.status().map(({ state }) => state),
      ['ready', 'ready', 'ready', 'ready'],
    );
    stop.abort();
    await run;
    assert.deepEqual(seen.slice(4), ['-controller', '-webhook', '-pods', '-nodes']);
    assert.equal(subject.notReady(), 'stopping');
  });

  it('ends with the error of a runnable that fails, after stopping the others', async () => {
    const { seen, make } = recorded();
    const failing: Runnable = { name: 'failing', start: () => Promise.reject(new Error('the port is in use')) };
    const subject = runtime().add('cache', make('pods')).add('server', failing);
    await assert.rejects(subject.run(new AbortController().signal), /the port is in use/);
    assert.deepEqual(seen, ['+pods', '-pods']);
    assert.deepEqual(subject.status()[1], {
      name: 'failing',
      group: 'server',
      state: 'failed',
      error: 'the port is in use',
    });
  });

  it('ends with an error that comes late or is thrown synchronously', async () => {
    const failure = Promise.withResolvers<void>();
    const late: Runnable = { name: 'late', start: () => failure.promise };
    const first = runtime().add('leader', late).run(new AbortController().signal);
    await settle();
    failure.reject(new Error('later'));
    await assert.rejects(first, /later/);
    const throwing: Runnable = {
      name: 'throwing',
      start() {
        throw new Error('at once');
      },
    };
    await assert.rejects(runtime().add('cache', throwing).run(new AbortController().signal), /at once/);
  });

  it('continues when a runnable has ended', async () => {
    const { seen, make } = recorded();
    const once: Runnable = { name: 'once', ready: new Promise(() => undefined), start: () => Promise.resolve() };
    const stop = new AbortController();
    const run = runtime().add('cache', once).add('server', make('webhook')).run(stop.signal);
    await settle();
    assert.deepEqual(seen, ['+webhook']);
    stop.abort();
    await run;
  });

  it('stops before everything has started', async () => {
    const { seen, make } = recorded();
    const stop = new AbortController();
    const run = runtime()
      .add('cache', make('pods', { ready: new Promise(() => undefined) }))
      .add('server', make('webhook'))
      .run(stop.signal);
    await settle();
    stop.abort();
    await run;
    assert.deepEqual(seen, ['+pods', '-pods']);
  });

  it('names runnables that do not stop in time, and stops the others', async () => {
    const { seen, make } = recorded();
    const clock = new ManualClock();
    const subject = runtime({ clock, stopMs: 3000 })
      .add('cache', make('pods'))
      .add('leader', make('stuck', { stopped: new Promise(() => undefined) }));
    const stop = new AbortController();
    const run = subject.run(stop.signal);
    run.catch(() => undefined);
    await settle();
    stop.abort();
    await clock.pass(4000);
    await assert.rejects(run, /did not stop within 3000 ms: stuck/);
    assert.deepEqual(seen, ['+pods', '+stuck', '-pods']);
  });

  it('runs the leader group only while it leads, and is ready without leading', async () => {
    await using cluster = await EmbeddedCluster.open();
    const clock = new ManualClock();
    const { seen, make } = recorded();
    const member = (identity: string) => {
      const log = silentLog();
      const elector = new LeaderElector({
        cluster: cluster.admin,
        namespace: 'default',
        name: 'lease',
        identity,
        clock,
        log,
      });
      const stop = new AbortController();
      const subject = new Runtime({ log, elector, clock })
        .add('server', make(`server-${identity}`))
        .add('leader', make(`controller-${identity}`));
      return { subject, run: subject.run(stop.signal), stop: () => stop.abort() };
    };
    const a = member('a');
    await clock.pass(100);
    const b = member('b');
    await clock.pass(20_000);
    assert.deepEqual(seen, ['+server-a', '+controller-a', '+server-b']);
    assert.equal(b.subject.notReady(), undefined);
    assert.equal(b.subject.status()[1]?.state, 'waiting');
    a.stop();
    await clock.pass(6000);
    await a.run;
    assert.deepEqual(seen.slice(3), ['-controller-a', '-server-a', '+controller-b']);
    b.stop();
    await clock.pass(100);
    await b.run;
  });

  it('stops the leader group when leadership is lost, and starts it again with the next one', async () => {
    await using cluster = await EmbeddedCluster.open();
    const clock = new ManualClock();
    const { seen, make } = recorded();
    const log = silentLog();
    const lease = { namespace: 'default', name: 'lease' };
    const elector = new LeaderElector({ cluster: cluster.admin, ...lease, identity: 'a', clock, log });
    const stop = new AbortController();
    const subject = new Runtime({ log, elector, clock })
      .add('server', make('server'))
      .add('leader', make('controller'));
    const run = subject.run(stop.signal);
    await clock.pass(1000);
    const held = await cluster.admin.get(LEASES, lease);
    await cluster.admin.update(LEASES, { ...held, spec: { ...held.spec, holderIdentity: 'usurper' } });
    await clock.pass(5000);
    assert.deepEqual(seen, ['+server', '+controller', '-controller']);
    assert.deepEqual([subject.notReady(), subject.status()[1]?.state], [undefined, 'waiting']);
    await clock.pass(25_000);
    assert.deepEqual(seen.slice(3), ['+controller']);
    assert.equal(subject.status()[1]?.state, 'ready');
    stop.abort();
    await clock.pass(100);
    await run;
    assert.deepEqual(seen.slice(4), ['-controller', '-server']);
  });
});
