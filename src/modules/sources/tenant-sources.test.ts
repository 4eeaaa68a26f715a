import assert from 'node:assert/strict';
import type { LookupAddress } from 'node:dns';
import { mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises';
import type { LookupFunction } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';

import { downloadModule } from '../http/http-source.ts';
import { parseReference } from '../reference/module-reference.ts';
import type { HttpReference } from '../reference/module-reference.ts';
import { ModuleStore } from '../module-store.ts';
import { tenantLookup } from './tenant-sources.ts';
import { DEFAULT_SOURCES } from './sources.ts';
import { testModule } from '../testing/test-module.ts';
import { TestServer } from '../testing/test-server.ts';

const MODULE = testModule('a policy');
const FORBIDDEN = { code: 'source-forbidden' } as const;

/** A resolver to which every name has these addresses. */
function answering(...addresses: string[]): LookupFunction {
  const found = addresses.map((address): LookupAddress => ({ address, family: address.includes(':') ? 6 : 4 }));
  return (_name, options, callback) =>
    options.all === true ? callback(null, found) : callback(null, found[0]?.address ?? '', found[0]?.family);
}

interface Options {
  readonly lookup?: LookupFunction;
  readonly proxy?: string;
  readonly tenantHosts?: readonly string[];
}

async function download(url: string, { lookup, proxy, tenantHosts = [] }: Options = {}): Promise<Uint8Array> {
  return await downloadModule(parseReference(url) as HttpReference, {
    sources: { ...DEFAULT_SOURCES, proxies: proxy === undefined ? {} : { httpProxy: proxy }, tenantHosts },
    maxBytes: 10_000,
    isForTenant: true,
    ...(lookup === undefined ? {} : { lookup }),
  });
}

/** Tenants may use all modules: what is refused here is refused for its place. */
const ALL = { ...DEFAULT_SOURCES, tenantModules: ['*'] };

describe('a module for a tenant', () => {
  it('does not come from a loopback address, whichever way the address is written', async () => {
    await using server = await TestServer.start((_request, response) => response.end(MODULE));
    const { port } = new URL(server.origin);
    for (const host of ['127.0.0.1', 'localhost', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]']) {
      await assert.rejects(download(`http://${host}:${port}/p.wasm`), FORBIDDEN, host);
    }
    assert.equal(server.requests, 0);
  });

  it('does not come from a name that has such an address, not even beside another one', async () => {
    await using server = await TestServer.start((_request, response) => response.end(MODULE));
    const { port } = new URL(server.origin);
    for (const addresses of [
      ['10.0.0.1'],
      ['64:ff9b::7f00:1'],
      ['127.0.0.1'],
      ['1.1.1.1', '127.0.0.1'],
      ['::1'],
      ['fe80::1%eth0'],
    ]) {
      await assert.rejects(download(`http://policies.example:${port}/p.wasm`, { lookup: answering(...addresses) }), {
        ...FORBIDDEN,
        message: /policies\.example:\d+, which has a private or special address/,
      });
    }
    assert.equal(server.requests, 0);
  });

  it('does not come from where a redirect leads to such an address', async () => {
    await using inner = await TestServer.start((_request, response) => response.end(MODULE));
    // Stands for a server of the network: a proxy may be anywhere.
    await using outer = await TestServer.start((_request, response) =>
      response.writeHead(302, { location: `${inner.origin}/p.wasm` }).end(),
    );
    await assert.rejects(download('http://policies.example/p.wasm', { proxy: outer.origin }), FORBIDDEN);
    assert.equal(inner.requests, 0);
    assert.equal(outer.requests, 1);
  });

  it('comes from a host that the administrator names, wherever that is, but not from where that redirects', async () => {
    await using inner = await TestServer.start((_request, response) => response.end(MODULE));
    await using named = await TestServer.start((request, response) =>
      request.url === '/p.wasm' ? response.end(MODULE) : response.writeHead(302, { location: inner.origin }).end(),
    );
    const tenantHosts = [new URL(named.origin).host];
    assert.deepEqual(Buffer.from(await download(`${named.origin}/p.wasm`, { tenantHosts })), Buffer.from(MODULE));
    await assert.rejects(download(`${named.origin}/away.wasm`, { tenantHosts }), FORBIDDEN);
    await assert.rejects(download(`${inner.origin}/p.wasm`, { tenantHosts }), FORBIDDEN);
    assert.equal(inner.requests, 0);
  });

  it('comes through a proxy, wherever that is', async () => {
    await using proxy = await TestServer.start((_request, response) => response.end(MODULE));
    assert.deepEqual(
      Buffer.from(await download('http://policies.example/p.wasm', { proxy: proxy.origin })),
      Buffer.from(MODULE),
    );
  });

  it('does not come through a proxy from a name that has such an address here', async () => {
    await using proxy = await TestServer.start((_request, response) => response.end(MODULE));
    const options = { proxy: proxy.origin, lookup: answering('1.1.1.1', '10.0.0.1') };
    await assert.rejects(download('http://registry.internal/p.wasm', options), FORBIDDEN);
    assert.equal(proxy.requests, 0);
    const tenantHosts = ['registry.internal'];
    const lookup: LookupFunction = (name, lookupOptions, callback) =>
      answering(name === 'registry.internal' ? '10.0.0.1' : '127.0.0.1')(name, lookupOptions, callback);
    await download('http://registry.internal/p.wasm', { ...options, lookup, tenantHosts });
    assert.equal(proxy.requests, 1);
  });

  it('comes from files of the folder for tenants only', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'portcullis-tenant-'));
    const inside = join(folder.path, 'modules', 'p.wasm');
    const options = { cacheDir: join(folder.path, 'cache'), sources: ALL };
    const store = new ModuleStore({ ...options, tenantFolder: join(folder.path, 'modules') });
    const none = new ModuleStore(options);
    const outside = join(folder.path, 'p.wasm');
    await mkdir(join(folder.path, 'modules'));
    await Promise.all([inside, outside].map((file) => writeFile(file, MODULE)));
    const isForTenant = true;
    await assert.rejects(none.fetch(`file://${inside}`, { isForTenant }), FORBIDDEN);
    await assert.rejects(store.fetch(`file://${outside}`, { isForTenant }), FORBIDDEN);
    await assert.rejects(store.fetch(`file://${folder.path}/modules/../p.wasm`, { isForTenant }), FORBIDDEN);
    // At the same time: what one may have is no answer for the other.
    const [own, foreign] = await Promise.allSettled([
      store.fetch(`file://${outside}`),
      store.fetch(`file://${outside}`, { isForTenant }),
    ]);
    assert.deepEqual([own.status, foreign.status], ['fulfilled', 'rejected']);
    assert.equal((await store.fetch(`file://${inside}`, { isForTenant })).origin, 'source');
  });
});

describe('a module in the cache', () => {
  it('that a policy of the cluster fetched is not given to a tenant, whose source it must not be', async () => {
    await using server = await TestServer.start((_request, response) => response.end(MODULE));
    await using folder = await mkdtempDisposable(join(tmpdir(), 'portcullis-tenant-'));
    const store = new ModuleStore({ cacheDir: folder.path, sources: ALL });
    assert.equal((await store.fetch(`${server.origin}/p.wasm`)).origin, 'source');
    await assert.rejects(store.fetch(`${server.origin}/p.wasm`, { isForTenant: true }), FORBIDDEN);
  });
});

describe('the list of modules for tenants', () => {
  it('is asked before the cache, and does not concern policies of the cluster', async () => {
    await using server = await TestServer.start((_request, response) => response.end(MODULE));
    await using folder = await mkdtempDisposable(join(tmpdir(), 'portcullis-tenant-'));
    const { host } = new URL(server.origin);
    const open = { ...DEFAULT_SOURCES, tenantHosts: [host] };
    const named = new ModuleStore({
      cacheDir: folder.path,
      sources: { ...open, tenantModules: [`${server.origin}/a`] },
    });
    const { digest } = await named.fetch(`${server.origin}/a/p.wasm`, { isForTenant: true });
    const closed = new ModuleStore({ cacheDir: folder.path, sources: open });
    for (const reference of [`${server.origin}/a/p.wasm`, `${server.origin}/a/p.wasm@${digest}`]) {
      await assert.rejects(closed.fetch(reference, { isForTenant: true }), FORBIDDEN);
      await closed.fetch(reference);
    }
    await assert.rejects(named.fetch(`${server.origin}/b/p.wasm@${digest}`, { isForTenant: true }), FORBIDDEN);
    const pinned = new ModuleStore({ cacheDir: folder.path, sources: { ...open, tenantModules: [digest] } });
    await pinned.fetch(`${server.origin}/b/p.wasm@${digest}`, { isForTenant: true });
  });
});

describe('names for a tenant', () => {
  const ask = (lookup: LookupFunction, isAll: boolean): Promise<unknown> =>
    new Promise((resolve, reject) =>
      tenantLookup(
        new URL('https://host.example/'),
        [],
        undefined,
        lookup,
      )('host.example', { all: isAll }, (error, address) => (error === null ? resolve(address) : reject(error))),
    );

  it('are looked up as the caller wants them', async () => {
    assert.equal(await ask(answering('1.1.1.1', '1.0.0.1'), false), '1.1.1.1');
    assert.equal(((await ask(answering('1.1.1.1', '1.0.0.1'), true)) as unknown[]).length, 2);
  });

  it('that are not there say so', async () => {
    await assert.rejects(ask(answering(), true), { code: 'ENOTFOUND' });
  });
});
