// The controller runtime on a real API server: leader election between processes, controllers after lost connections, and events
// in `kubectl describe`.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { KubernetesCluster, tokenCredentials } from '../../src/cluster/index.ts';
import type { KubernetesObject, ResourceType } from '../../src/resources/index.ts';
import {
  Controller,
  EventRecorder,
  generationChanged,
  LEASES,
  Runtime,
  SharedCaches,
  Stalled,
  watch,
} from '../../src/runtime/index.ts';
import { FaultProxy } from '../cluster-port/fault-proxy.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { type Cluster, startCluster } from '../cluster/cluster.ts';
import { eventually } from '../cluster/eventually.ts';

interface ConfigMap extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>>;
}

const CONFIG_MAPS: ResourceType<ConfigMap> = {
  group: '',
  version: 'v1',
  resource: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
};

const log = pino({ level: 'silent' });

/** A process that is a candidate for leadership. */
class Contender {
  readonly #child: ChildProcess;
  /** The times at which it led. Milliseconds. */
  readonly times: number[] = [];

  constructor(server: Cluster, identity: string) {
    const script = fileURLToPath(new URL('runtime-contender.ts', import.meta.url));
    const args = [script, server.url, server.caFile, server.adminToken, identity];
    this.#child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    assert.ok(this.#child.stdout);
    createInterface({ input: this.#child.stdout }).on('line', (line) => this.times.push(Number(line)));
  }

  async leads(): Promise<void> {
    const { length } = this.times;
    await eventually(async () => assert.ok(this.times.length > length, 'it leads'));
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const exit = once(this.#child, 'exit');
      this.#child.kill(signal);
      await exit;
    }
  }
}

describe('the controller runtime on a real API server', { skip: skipWithoutCluster() }, () => {
  let server: Cluster;
  let cluster: KubernetesCluster;

  before(async () => {
    server = await startCluster();
    cluster = new KubernetesCluster({
      server: server.url,
      ca: readFileSync(server.caFile, 'utf8'),
      credentials: tokenCredentials(server.adminToken),
    });
  });

  after(async () => {
    cluster?.close();
    await server?.stop();
  });

  it('lets one process lead, and another one after it was killed, never two', async () => {
    const first = new Contender(server, 'first');
    const contenders = [first];
    try {
      await first.leads();
      const second = new Contender(server, 'second');
      contenders.push(second);
      await new Promise((resolve) => setTimeout(resolve, 1000));
      assert.equal(second.times.length, 0);
      await first.end('SIGKILL');
      await second.leads();
      const [last, next] = [first.times.at(-1)!, second.times[0]!];
      assert.ok(next > last, `the second led from ${next}, the first until ${last}`);
      // The killed leader did not release its Lease, which had to expire.
      assert.ok(next - last >= 1500, `the second led ${next - last} ms after the first`);
      const third = new Contender(server, 'third');
      contenders.push(third);
      await second.end('SIGTERM');
      await third.leads();
      assert.ok(third.times[0]! > second.times.at(-1)!);
      const lease = await cluster.get(LEASES, { namespace: 'default', name: 'contest' });
      assert.equal(lease.spec?.holderIdentity, 'third');
      assert.equal(lease.spec?.leaseTransitions, 2);
    } finally {
      for (const contender of contenders) {
        await contender.end('SIGKILL');
      }
    }
  });

  it('makes the world as it should be again after its connections were cut', async () => {
    await server.createNamespace('copies');
    await using proxy = await FaultProxy.start(server);
    const cut = new KubernetesCluster({
      server: proxy.url,
      ca: proxy.ca,
      credentials: tokenCredentials(server.adminToken),
    });
    const caches = new SharedCaches({ cluster: cut, log });
    const cache = caches.cache(CONFIG_MAPS, { namespace: 'copies' });
    const controller = new Controller({
      name: 'copier',
      log,
      watches: [watch(cache)],
      async reconcile(key) {
        const object = cache.get(key);
        const { text, copy } = object?.data ?? {};
        if (text !== undefined && text !== copy) {
          await cut.patch(CONFIG_MAPS, key, { type: 'merge', body: { data: { copy: text } } });
        }
      },
    });
    const stop = new AbortController();
    const run = new Runtime({ log }).add('cache', caches).add('leader', controller).run(stop.signal);
    try {
      const names = Array.from({ length: 20 }, (_, index) => `map-${index}`);
      const writeAll = (text: string): Promise<unknown> =>
        Promise.all(
          names.map((name) =>
            cluster.patch(
              CONFIG_MAPS,
              { namespace: 'copies', name },
              {
                type: 'apply',
                body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'copies' }, data: { text } },
              },
              { fieldManager: 'test' },
            ),
          ),
        );
      const copied = async (text: string): Promise<void> =>
        eventually(async () => {
          const { items } = await cluster.list(CONFIG_MAPS, { namespace: 'copies' });
          assert.deepEqual(new Set(items.map(({ data }) => data?.copy)), new Set([text]));
        });
      await writeAll('one');
      await copied('one');
      proxy.inject({ kind: 'cut' });
      await writeAll('two');
      await new Promise((resolve) => setTimeout(resolve, 500));
      proxy.heal();
      await copied('two');
      assert.equal(cache.report.relists, 0);
    } finally {
      stop.abort();
      await run;
      cut.close();
    }
  });

  it('shows the result of a reconciliation in kubectl describe', async () => {
    const caches = new SharedCaches({ cluster, log });
    const cache = caches.cache(CONFIG_MAPS, { namespace: 'default' });
    const recorder = new EventRecorder({ cluster, component: 'portcullis-test', log });
    const controller = new Controller({
      name: 'refuser',
      log,
      watches: [watch(cache, { when: [generationChanged] })],
      reconcile({ name }) {
        if (name === 'broken') {
          throw new Stalled('ModuleInvalid', 'expected WebAssembly, got a song');
        }
      },
      events: { sink: recorder, of: (key) => cache.get(key) },
    });
    const stop = new AbortController();
    const run = new Runtime({ log }).add('cache', caches, recorder).add('leader', controller).run(stop.signal);
    try {
      const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'default', name: 'broken' } };
      await cluster.create(CONFIG_MAPS, object);
      const described = async (pattern: RegExp): Promise<void> =>
        eventually(async () => {
          const { stdout } = await server.kubectl(['describe', 'configmap', 'broken', '-n', 'default']);
          assert.match(stdout, pattern);
        });
      await described(/Warning\s+ModuleInvalid\s+\S+\s+portcullis-test\s+expected WebAssembly, got a song/);
      controller.enqueue({ namespace: 'default', name: 'broken' });
      await described(/Warning\s+ModuleInvalid\s+\S+ \(x2 over \S+\)\s+portcullis-test/);
      const node = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'copies', uid: 'no-such-uid' } };
      recorder.event(node, 'Normal', 'Seen', 'an object without a namespace');
      await eventually(async () => {
        const { stdout } = await server.kubectl(['get', 'events', '-n', 'default']);
        assert.match(stdout, /Normal\s+Seen\s+namespace\/copies\s+an object without a namespace/);
      });
    } finally {
      stop.abort();
      await run;
    }
  });
});
