import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import { CopiesEndpoint, type CopiesReport, type ControlTls } from '../../control/index.ts';
import { ensureLocalCertificates } from '../../control/certificates/index.ts';
import type { ControllerReplica } from '../../resources/index.ts';
import { ObjectStore } from '../../runtime/index.ts';
import { until } from '../testing/until.ts';
import { CopyDirectory } from './copy-directory.ts';

const ONE = { policyServer: 'default', digest: `sha256:${'1'.repeat(64)}` } as const;
const TWO = { policyServer: 'default', digest: `sha256:${'2'.repeat(64)}` } as const;
const log = pino({ level: 'silent' });

describe('the directory of copies', () => {
  let folder: string;
  let tls: ControlTls;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'portcullis-directory-'));
    const pki = await ensureLocalCertificates(folder);
    tls = { certFile: pki.controlCertFile, keyFile: pki.controlKeyFile, caFile: pki.caFile };
  });
  after(() => rmSync(folder, { recursive: true }));

  /** A controller with the copies that a test sets. */
  class Controller {
    #report: CopiesReport = { version: '0', copies: {}, refused: {} };
    readonly #listeners = new Set<() => void>();
    readonly endpoint: CopiesEndpoint;

    constructor() {
      this.endpoint = new CopiesEndpoint({
        host: '127.0.0.1',
        port: 0,
        tls,
        source: {
          find: () => undefined,
          report: () => this.#report,
          subscribe: (listener) => {
            this.#listeners.add(listener);
            return () => this.#listeners.delete(listener);
          },
        },
        log,
      });
    }

    has(copies: readonly string[], refused: readonly string[] = []): void {
      const version = String(Number(this.#report.version) + 1);
      this.#report = { version, copies: { default: copies }, refused: { default: refused } };
      this.#listeners.forEach((listener) => listener());
    }
  }

  function objectOf(name: string, port: number): ControllerReplica {
    return {
      apiVersion: 'portcullis.dev/v1',
      kind: 'ControllerReplica',
      metadata: { name, namespace: 'portcullis', uid: name, resourceVersion: String(port) },
      spec: { nodeName: `node-${name}`, controlAddress: `127.0.0.1:${port}` },
    };
  }

  /** A cluster that notes the names of what is deleted. */
  function deletions(): { readonly deleted: readonly string[]; readonly cluster: never } {
    const deleted: string[] = [];
    const cluster = {
      delete: (_type: unknown, { name }: { readonly name: string }) => {
        deleted.push(name);
        return Promise.resolve(undefined);
      },
    };
    return { deleted, cluster: cluster as never };
  }

  it('makes room for new controllers by those that ended without a word', async () => {
    const left = Array.from({ length: 40 }, (_, index) => {
      const object = objectOf(`left-${index}`, 1);
      return { ...object, spec: { ...object.spec, startedAt: `2026-01-01T00:00:${String(index).padStart(2, '0')}Z` } };
    });
    const controllers = Object.assign(new ObjectStore<ControllerReplica>(), { synced: Promise.resolve() });
    const { deleted, cluster } = deletions();
    const directory = new CopyDirectory({ cluster, controllers, tls, log });
    const living = new Controller();
    living.has([ONE.digest]);
    const object = objectOf('living', await living.endpoint.start());
    controllers.replace([...left, { ...object, spec: { ...object.spec, startedAt: '2026-01-02T00:00:00Z' } }]);
    const stop = new AbortController();
    const ended = directory.start(stop.signal);
    try {
      await until(() => directory.count([ONE])?.controllers === 1);
      assert.deepEqual(
        deleted,
        left.slice(0, 9).map(({ metadata }) => metadata.name),
        'the oldest',
      );
    } finally {
      stop.abort();
      await ended;
      await living.endpoint.stop();
    }
  });

  it('counts what controllers say that they have, and tells which policies to look at', async () => {
    const controllers = Object.assign(new ObjectStore<ControllerReplica>(), { synced: Promise.resolve() });
    const { deleted, cluster } = deletions();
    const directory = new CopyDirectory({ cluster, controllers, tls, log, lostAfterMs: 50 });
    const changed: string[] = [];
    directory.subscribe((keys) => changed.push(...keys));
    const [a, b] = [new Controller(), new Controller()];
    const [portA, portB] = [await a.endpoint.start(), await b.endpoint.start()];
    assert.equal(directory.count([ONE]), undefined);
    controllers.replace([objectOf('a', portA), objectOf('b', portB)]);
    const stop = new AbortController();
    const ended = directory.start(stop.signal);
    try {
      await until(() => directory.count([ONE]) !== undefined);
      assert.deepEqual(directory.count([ONE]), { controllers: 0, nodes: [], isRefused: false });
      a.has([ONE.digest, TWO.digest]);
      b.has([ONE.digest], [TWO.digest]);
      await until(() => directory.count([ONE])?.controllers === 2 && directory.count([TWO])?.isRefused === true);
      assert.deepEqual(directory.count([ONE, TWO]), { controllers: 1, nodes: ['node-a'], isRefused: true });
      assert.deepEqual(directory.count([{ ...ONE, policyServer: 'other' }]), {
        controllers: 0,
        nodes: [],
        isRefused: false,
      });
      assert.deepEqual(new Set(changed), new Set([ONE, TWO].map((key) => `default/${key.digest}`)));

      // A process that ended without a word no longer counts, and its object is removed.
      await b.endpoint.stop();
      await until(() => directory.count([ONE])?.controllers === 1 && deleted.includes('b'));
      // So does one whose object is deleted.
      controllers.apply({ type: 'DELETED', object: objectOf('a', portA) });
      await until(() => directory.count([ONE])?.controllers === 0);
    } finally {
      stop.abort();
      await ended;
      await Promise.all([a.endpoint.stop(), b.endpoint.stop()]);
    }
  });
});
