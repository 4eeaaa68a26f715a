import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { describe, it } from 'node:test';

import { DownloadBudget, MAX_DOWNLOAD_BYTES, MAX_DOWNLOADS, MAX_DOWNLOADS_PER_HOST } from './download-budget.ts';
import { ModuleStore } from './module-store.ts';
import { DEFAULT_SOURCES } from './sources/sources.ts';
import { TemporaryFolder } from './testing/temporary-folder.ts';
import { TestAuthority } from './testing/test-authority.ts';
import { testModule } from './testing/test-module.ts';
import { TestRegistry } from './testing/test-registry.ts';
import { TestServer } from './testing/test-server.ts';

const never = new AbortController().signal;
const MIB = 1024 * 1024;

async function until(isSo: () => boolean): Promise<void> {
  const deadline = performance.now() + 30_000;
  while (!isSo()) {
    assert.ok(performance.now() < deadline, 'waited 30 s');
    await new Promise((resolve) => {
      setTimeout(resolve, 5);
    });
  }
}

/** The state of a promise after everything that can happen now has happened. */
async function isPending(promise: Promise<unknown>): Promise<boolean> {
  const turn = new Promise((resolve) => {
    setImmediate(resolve, 'pending');
  });
  return (await Promise.race([promise, turn])) === 'pending';
}

describe('downloads', { timeout: 60_000 }, () => {
  it('from a host that does not answer delay no others, and are bounded', async () => {
    await using folder = await TemporaryFolder.create();
    const pending: ServerResponse[] = [];
    await using silent = await TestServer.start((_request, response) => pending.push(response));
    await using other = await TestServer.start((_request, response) => response.end(testModule('other')));
    const store = new ModuleStore({ cacheDir: folder.path });
    const stop = new AbortController();
    const fetches = Array.from({ length: 3 * MAX_DOWNLOADS_PER_HOST }, (_, index) =>
      store.fetch(`${silent.origin}/${index}.wasm`, { signal: stop.signal }),
    );
    const settled = Promise.allSettled(fetches);
    await until(() => pending.length === MAX_DOWNLOADS_PER_HOST);
    assert.equal((await store.fetch(`${other.origin}/x.wasm`)).origin, 'source');
    assert.equal(pending.length, MAX_DOWNLOADS_PER_HOST);
    pending[0]?.end(testModule('one is done'));
    await until(() => pending.length === MAX_DOWNLOADS_PER_HOST + 1);
    stop.abort();
    assert.equal((await settled).filter(({ status }) => status === 'fulfilled').length, 1);
    assert.equal((await store.fetch(`${other.origin}/y.wasm`)).origin, 'source');
  });

  it('of large modules are sent one after the other when their bytes together are too many', async () => {
    const authority = await TestAuthority.create();
    await using registry = await TestRegistry.start(await authority.issue());
    await using folder = await TemporaryFolder.create();
    const sources = {
      ...DEFAULT_SOURCES,
      sourceAuthorities: { [registry.host]: [{ type: 'Data' as const, data: authority.pem }] },
      tenantHosts: [registry.host],
      tenantModules: ['*'],
    };
    const store = new ModuleStore({ cacheDir: folder.path, sources });
    const blobs: ServerResponse[] = [];
    registry.intercept = ({ url = '' }, response) =>
      url.includes('large') && url.includes('/blobs/') && blobs.push(response) > 0;
    const references = Array.from({ length: 6 }, (_, index) => {
      const descriptor = registry.blob(`large/${index}`, testModule(`large ${index}`)) as { readonly digest: string };
      const layers = [{ ...descriptor, size: 60 * MIB }];
      registry.manifest(`large/${index}`, 'v1', { schemaVersion: 2, layers });
      return `${registry.host}/large/${index}:v1`;
    });
    registry.push('small', 'v1', testModule('small'));
    const stop = new AbortController();
    const fetches = references.map((reference) =>
      assert.rejects(store.fetch(reference, { signal: stop.signal, isForTenant: true })),
    );
    await until(() => blobs.length === 3);
    // Policies of the cluster do not wait for those of tenants.
    assert.equal((await store.fetch(`${registry.host}/small:v1`)).origin, 'source');
    assert.equal(blobs.length, 3);
    blobs[0]?.destroy();
    await until(() => blobs.length === 4);
    stop.abort();
    await Promise.all(fetches);
  });
});

describe('DownloadBudget', () => {
  it('bounds all downloads, and leaves a share to policies of the cluster', async () => {
    const budget = new DownloadBudget();
    const hosts = Array.from({ length: MAX_DOWNLOADS }, (_, index) => `host-${index}`);
    const tenants = hosts.map((host) => budget.begin(host, true, never));
    const started = (await Promise.all(tenants.map(isPending))).filter((pending) => !pending).length;
    assert.equal(started, (MAX_DOWNLOADS * 3) / 4);
    const own = hosts.map((host) => budget.begin(host, false, never));
    assert.equal((await Promise.all(own.map(isPending))).filter((pending) => !pending).length, MAX_DOWNLOADS / 4);
    for (const download of [...own, ...tenants]) {
      (await download)[Symbol.dispose]();
    }
  });

  it('holds one module of any size, and no more than the limit of several', async () => {
    const budget = new DownloadBudget();
    const [one, two] = [await budget.begin('a', false, never), await budget.begin('b', false, never)];
    await one.reserve(2 * MAX_DOWNLOAD_BYTES, never);
    const waiting = two.reserve(1, never);
    assert.ok(await isPending(waiting));
    // Less for the first: both fit.
    await one.reserve(MAX_DOWNLOAD_BYTES - 1, never);
    await waiting;
    const more = two.reserve(2, never);
    assert.ok(await isPending(more));
    one[Symbol.dispose]();
    await more;
    two[Symbol.dispose]();
  });

  it('forgets who gave up', async () => {
    const budget = new DownloadBudget();
    using one = await budget.begin('a', false, never);
    await one.reserve(MAX_DOWNLOAD_BYTES, never);
    const two = await budget.begin('a', false, never);
    const stop = new AbortController();
    const gaveUp = assert.rejects(two.reserve(1, stop.signal), { name: 'AbortError' });
    stop.abort();
    await gaveUp;
    two[Symbol.dispose]();
    await one.reserve(0, never);
    using three = await budget.begin('a', false, never);
    await three.reserve(MAX_DOWNLOAD_BYTES, never);
  });

  it('of policies of tenants leave places at each host to others', async () => {
    const budget = new DownloadBudget();
    const tenants = Array.from({ length: MAX_DOWNLOADS_PER_HOST }, () => budget.begin('ghcr.io', true, never));
    assert.equal(await isPending(Promise.all(tenants)), true);
    assert.equal(await isPending(budget.begin('ghcr.io', false, never)), false);
  });

  it('that were given up hold no place, also when one is free in the same moment', async () => {
    const budget = new DownloadBudget();
    const begun = await Promise.all(
      Array.from({ length: MAX_DOWNLOADS_PER_HOST }, () => budget.begin('ghcr.io', false, never)),
    );
    const stop = new AbortController();
    const waiting = assert.rejects(budget.begin('ghcr.io', false, stop.signal));
    stop.abort();
    for (const download of begun) {
      download[Symbol.dispose]();
    }
    await waiting;
    const again = Array.from({ length: MAX_DOWNLOADS_PER_HOST }, () => budget.begin('ghcr.io', false, never));
    assert.equal(await isPending(Promise.all(again)), false);
  });
});
