// What a tenant gets by naming a digest: never a module that its own reference has not brought.
import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';

import { digestOf } from './reference/digest.ts';
import { parseReference } from './reference/module-reference.ts';
import { ModuleStore } from './module-store.ts';
import { DEFAULT_SOURCES } from './sources/sources.ts';
import { TemporaryFolder } from './testing/temporary-folder.ts';
import { testModule } from './testing/test-module.ts';
import { TestAuthority } from './testing/test-authority.ts';
import { TestRegistry } from './testing/test-registry.ts';
import { TestServer } from './testing/test-server.ts';

const PRIVATE = testModule('a private module');
const DIGEST = digestOf(PRIVATE);
const OPEN = { ...DEFAULT_SOURCES, tenantModules: ['*'] };
const PASSWORD = `Basic ${Buffer.from('shop:s3cr3t').toString('base64')}`;

/** Serves the private module with the password only, and nothing else. */
async function guarded(): Promise<TestServer> {
  return await TestServer.start((request, response) =>
    request.headers.authorization === PASSWORD ? response.end(PRIVATE) : response.writeHead(401).end(),
  );
}

function withPassword({ host }: TestServer): string {
  return `http://shop:s3cr3t@${host}/m.wasm`;
}

describe('a digest that a tenant names', () => {
  it('is no right to a module that a policy of the cluster uses', async () => {
    await using folder = await TemporaryFolder.create();
    await using server = await guarded();
    await using other = await TestServer.start((_request, response) => response.writeHead(404).end());
    const sources = { ...OPEN, tenantHosts: [other.host] };
    const store = new ModuleStore({ cacheDir: folder.path, sources });
    await store.fetch(withPassword(server));
    for (const [reference, code] of [
      [`${other.origin}/m.wasm@${DIGEST}`, 'source-not-found'],
      [`${server.origin}/m.wasm@${DIGEST}`, 'source-forbidden'],
      [`${withPassword(server)}@${DIGEST}`, 'source-forbidden'],
      [`file:///etc/hostname@${DIGEST}`, 'source-forbidden'],
    ] as const) {
      await assert.rejects(store.fetch(reference, { isForTenant: true }), { code }, reference);
    }
    await assert.rejects(store.fetch(`${server.origin}/m.wasm@${DIGEST}`, { isForTenant: true, offline: true }), {
      code: 'not-cached',
    });
  });

  it('is no right to what another tenant has by its credentials, with the source up and down', async () => {
    await using folder = await TemporaryFolder.create();
    await using server = await guarded();
    const sources = { ...OPEN, tenantHosts: [server.host] };
    const store = new ModuleStore({ cacheDir: folder.path, sources });
    await store.fetch(withPassword(server), { isForTenant: true });
    const attempts = [server.origin, `http://shop:wrong@${server.host}`].flatMap((origin) => [
      `${origin}/m.wasm`,
      `${origin}/m.wasm@${DIGEST}`,
    ]);
    for (const attempt of attempts) {
      await assert.rejects(store.fetch(attempt, { isForTenant: true }), { code: 'source-unauthorized' }, attempt);
    }
    await server[Symbol.asyncDispose]();
    for (const attempt of attempts) {
      await assert.rejects(store.fetch(attempt, { isForTenant: true }), { code: 'source-unreachable' }, attempt);
    }
    assert.equal((await store.fetch(withPassword(server), { isForTenant: true })).origin, 'cache');
    assert.equal((await store.fetch(`${withPassword(server)}@${DIGEST}`, { isForTenant: true })).origin, 'cache');
  });

  it('is no right to a module by a manifest that names what its repository does not have', async () => {
    await using folder = await TemporaryFolder.create();
    const authority = await TestAuthority.create();
    await using registry = await TestRegistry.start(await authority.issue());
    const { digest: manifest } = registry.push('private/m', 'v1', PRIVATE);
    const sources = { ...authority.sourcesFor(registry.host), tenantModules: ['*'], tenantHosts: [registry.host] };
    const store = new ModuleStore({ cacheDir: folder.path, sources });
    const owned = `registry://${registry.host}/private/m:v1`;
    await store.fetch(owned, { isForTenant: true });

    // The same manifest in a repository of the attacker, without its module.
    const copied = registry.stored('private/m/manifests/v1');
    assert.ok(copied);
    registry.manifest('attacker/m', 'v1', copied);
    for (const reference of ['attacker/m:v1', `attacker/m@${manifest}`]) {
      await assert.rejects(store.fetch(`registry://${registry.host}/${reference}`, { isForTenant: true }), {
        code: 'source-not-found',
      });
    }
    const blobs = (): number => registry.paths.filter((path) => path.includes(`private/m/blobs/${DIGEST}`)).length;
    assert.equal((await store.fetch(owned, { isForTenant: true })).origin, 'source');
    assert.equal((await store.fetch(`${owned}@${manifest}`, { isForTenant: true })).origin, 'cache');
    assert.equal(blobs(), 1, 'the owner does not download it again');
  });

  it('brings no module from other replicas, unless it was validated for the policy', async () => {
    await using folder = await TemporaryFolder.create();
    const authority = await TestAuthority.create();
    const identity = await authority.issue('peers.example');
    const tls = { ...identity, ca: authority.pem, requestCert: true };
    await using peer = await TestServer.start((_request, response) => response.end(PRIVATE), tls);
    const file = (name: string): string => join(folder.path, name);
    await Promise.all(
      Object.entries({ cert: identity.cert, key: identity.key, ca: authority.pem }).map(([name, pem]) =>
        writeFile(file(name), pem),
      ),
    );
    await using server = await guarded();
    const store = new ModuleStore({
      cacheDir: file('cache'),
      sources: { ...OPEN, tenantHosts: [server.host] },
      peers: {
        certFile: file('cert'),
        keyFile: file('key'),
        caFile: file('ca'),
        serverName: 'peers.example',
        addresses: () => ({ replicas: [peer.host], controllers: [] }),
      },
    });
    const named = `${server.origin}/m.wasm@${DIGEST}`;
    await assert.rejects(store.fetch(named, { isForTenant: true }), { code: 'source-unauthorized' });
    assert.equal(peer.requests, 0);

    // What was validated for a revision comes from a replica, while its source is down and after the cache was lost.
    await server[Symbol.asyncDispose]();
    const validated = { isForTenant: true, isValidated: true };
    assert.equal((await store.fetch(`${withPassword(server)}@${DIGEST}`, validated)).origin, 'peer');
    await rm(file('cache'), { recursive: true });
    const revision = { ...parseReference(withPassword(server)), digest: DIGEST };
    assert.equal((await store.fetch(revision, validated)).origin, 'peer');
    // A later version of that policy names it again.
    assert.equal((await store.fetch(`${withPassword(server)}@${DIGEST}`, { isForTenant: true })).origin, 'cache');
    await assert.rejects(store.fetch(named, { isForTenant: true }), { code: 'source-unreachable' });
  });
});
