import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { TLSSocket } from 'node:tls';

import { digestOf } from './reference/digest.ts';
import { parseReference } from './reference/module-reference.ts';
import { ModuleStore } from './module-store.ts';
import type { PeerSource } from './peer-source.ts';
import { TemporaryFolder } from './testing/temporary-folder.ts';
import { TestAuthority } from './testing/test-authority.ts';
import type { ServerIdentity } from './testing/test-authority.ts';
import { testModule } from './testing/test-module.ts';
import { TestServer } from './testing/test-server.ts';

const NAME = 'peers.example';
const MODULE = testModule('one');
const DIGEST = digestOf(MODULE);

describe('modules from peers', () => {
  let folder: TemporaryFolder;
  let identity: ServerIdentity & { readonly ca: string; readonly requestCert: true };
  let source: TestServer;
  let caches = 0;

  before(async () => {
    folder = await TemporaryFolder.create();
    const authority = await TestAuthority.create();
    identity = { ...(await authority.issue(NAME)), ca: authority.pem, requestCert: true };
    await Promise.all(
      Object.entries({ cert: identity.cert, key: identity.key, ca: authority.pem }).map(([name, pem]) =>
        writeFile(join(folder.path, name), pem),
      ),
    );
    source = await TestServer.start((_request, response) => response.end(MODULE));
  });
  beforeEach(() => {
    source.requests = 0;
  });
  after(async () => {
    await source[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });

  /** A store with an empty cache, and peers at these addresses. */
  function storeWith(
    replicas: readonly string[],
    rest: Partial<PeerSource> = {},
    controllers: readonly string[] = [],
  ): ModuleStore {
    caches += 1;
    const file = (name: string): string => join(folder.path, name);
    const peers = { certFile: file('cert'), keyFile: file('key'), caFile: file('ca'), serverName: NAME, ...rest };
    return new ModuleStore({
      cacheDir: file(`cache-${caches}`),
      peers: { ...peers, addresses: () => ({ replicas, controllers }) },
    });
  }

  const peer = (listener: RequestListener): Promise<TestServer> => TestServer.start(listener, identity);
  const having = (): Promise<TestServer> =>
    peer((request, response) => {
      assert.equal(request.url, `/modules/${DIGEST}`);
      response.end(MODULE);
    });
  const without = (): Promise<TestServer> => peer((_request, response) => response.writeHead(404).end());
  const pinned = (): string => `${source.origin}/x.wasm?token=s3cr3t@${DIGEST}`;

  it('come from the one that has it, before the source is tried, and are kept', async () => {
    await using one = await without();
    await using other = await having();
    const store = storeWith([one.host, other.host]);
    const module = await store.fetch(pinned());
    assert.deepEqual([module.origin, module.digest, source.requests], ['peer', DIGEST, 0]);
    assert.equal((await store.fetch(pinned())).origin, 'cache');
    assert.equal(other.requests, 1);
  });

  it('are controllers as well, for revisions only, and before many replicas that are gone', async () => {
    await using controller = await having();
    const pinnedModule = parseReference(pinned());
    const store = storeWith([], {}, [controller.host]);
    assert.deepEqual([(await store.fetch(pinnedModule)).origin, controller.requests], ['source', 0]);
    const empty = storeWith(Array<string>(64).fill('127.0.0.1:9'), {}, [controller.host]);
    assert.equal((await empty.fetch(pinnedModule, { isValidated: true })).origin, 'peer');
    assert.equal(controller.requests, 1);
  });

  it('are shown a certificate, and must have the right name', async () => {
    const seen: unknown[] = [];
    await using one = await peer((request, response) => {
      seen.push('getPeerCertificate' in request.socket);
      seen.push((request.socket as TLSSocket).getPeerCertificate().subject.CN);
      response.end(MODULE);
    });
    assert.equal((await storeWith([one.host]).fetch(pinned())).origin, 'peer');
    assert.deepEqual(seen, [true, NAME]);
    assert.equal((await storeWith([one.host], { serverName: 'other.example' }).fetch(pinned())).origin, 'source');
  });

  it('get no request for a module without a digest', async () => {
    await using one = await having();
    const module = await storeWith([one.host]).fetch(`${source.origin}/x.wasm`);
    assert.deepEqual([module.origin, one.requests], ['source', 0]);
  });

  it('get no request when the cache has it', async () => {
    await using one = await having();
    const store = storeWith([one.host]);
    await store.fetch(`${source.origin}/x.wasm`);
    assert.equal((await store.fetch(pinned())).origin, 'cache');
    assert.equal(one.requests, 0);
  });

  it('with something else, too much, too little or another status are passed over', async () => {
    const wrong: readonly RequestListener[] = [
      (_request, response) => response.end(testModule('two')),
      (_request, response) =>
        response.writeHead(200, { 'content-length': 10_000 }).write('x', () => response.destroy()),
      (_request, response) => response.writeHead(302, { location: `${source.origin}/x.wasm` }).end(),
      (_request, response) => response.writeHead(500).end('secret'),
    ];
    for (const listener of wrong) {
      await using one = await peer(listener);
      await using other = await having();
      assert.equal((await storeWith([one.host]).fetch(pinned())).origin, 'source');
      assert.equal((await storeWith([one.host, other.host]).fetch(pinned())).origin, 'peer');
    }
  });

  it('that are busy are tried again rather than the source', async () => {
    let asked = 0;
    await using one = await peer((_request, response) => {
      asked += 1;
      if (asked === 1) {
        response.writeHead(503, { 'retry-after': '1' }).end();
      } else {
        response.end(MODULE);
      }
    });
    assert.equal((await storeWith([one.host]).fetch(pinned())).origin, 'peer');
    assert.equal(source.requests, 0);
  });

  it('that take a connection and say nothing hold up neither the others nor the source', async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => sockets.push(socket));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const address = `127.0.0.1:${(silent.address() as AddressInfo).port}`;
    await using other = await having();
    assert.equal(
      (await storeWith([address, address, address, other.host], { answerTimeoutMs: 100 }).fetch(pinned())).origin,
      'peer',
    );
    assert.equal((await storeWith([address], { answerTimeoutMs: 100 }).fetch(pinned())).origin, 'source');
    for (const socket of sockets) {
      socket.destroy();
    }
    await new Promise((resolve) => silent.close(resolve));
  });

  it('are in the error when the source fails too: how many, not where, and without secrets', async () => {
    await using one = await without();
    await using down = await without();
    const gone = down.host;
    await down[Symbol.asyncDispose]();
    await using broken = await TestServer.start((_request, response) => response.writeHead(502).end());
    const reference = `http://user:pass@${broken.host}/x.wasm?token=s3cr3t@${DIGEST}`;
    await assert.rejects(storeWith([one.host, gone, 'no address', 'a@b/c?d']).fetch(reference), (error: Error) => {
      assert.match(
        error.message,
        /answered 502.*\(other replicas were tried first: 1 without the module, 3 out of reach\)$/,
      );
      assert.doesNotMatch(error.message, /s3cr3t|user|pass/);
      assert.ok(!error.message.includes(one.host) && !error.message.includes(gone));
      return 'code' in error && error.code === 'source-failed';
    });
  });

  it('get no request without a client certificate', async () => {
    await using one = await having();
    const store = storeWith([one.host], { keyFile: join(folder.path, 'none') });
    assert.equal((await store.fetch(pinned())).origin, 'source');
    assert.equal(one.requests, 0);
  });

  it('are given up when the caller is no longer interested', async () => {
    const arrived = Promise.withResolvers<void>();
    await using one = await peer(() => arrived.resolve());
    const leaving = new AbortController();
    const fetching = storeWith([one.host]).fetch(pinned(), { signal: leaving.signal });
    await arrived.promise;
    leaving.abort();
    await assert.rejects(fetching, { name: 'AbortError' });
    assert.equal(source.requests, 0);
  });
});
