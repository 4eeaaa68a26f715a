import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';

import { digestOf } from './reference/digest.ts';
import { ModuleStore } from './module-store.ts';
import { DEFAULT_MAX_MODULE_BYTES, LARGEST_MODULE_BYTES } from './sources/module-sizes.ts';
import { DEFAULT_SOURCES } from './sources/sources.ts';
import { TemporaryFolder } from './testing/temporary-folder.ts';
import { testModule } from './testing/test-module.ts';
import { TestServer } from './testing/test-server.ts';

const ONE = testModule('version one');
const TWO = testModule('version two');

async function serving(module: () => Uint8Array): Promise<TestServer> {
  return await TestServer.start((_request, response) => response.writeHead(200).end(module()));
}

/** The path of an entry of the cache. */
function entry(cacheDir: string, bytes: Uint8Array, kind = 'sha256'): string {
  return join(cacheDir, kind, `${digestOf(bytes).slice('sha256:'.length)}.wasm`);
}

describe('ModuleStore', () => {
  it('fetches from the source every time, so that a new module is seen', async () => {
    await using folder = await TemporaryFolder.create();
    let module = ONE;
    await using server = await serving(() => module);
    const store = new ModuleStore({ cacheDir: folder.path });
    const first = await store.fetch(`${server.origin}/x.wasm?token=s3cr3t`);
    assert.deepEqual(
      { ...first, bytes: Buffer.from(first.bytes) },
      { url: `${server.origin}/x.wasm?…`, digest: digestOf(ONE), bytes: Buffer.from(ONE), origin: 'source' },
    );
    module = TWO;
    assert.equal((await store.fetch(`${server.origin}/x.wasm?token=s3cr3t`)).digest, digestOf(TWO));
  });

  it('needs no source for a pinned module that it has', async () => {
    await using folder = await TemporaryFolder.create();
    await using server = await serving(() => ONE);
    const pinned = `${server.origin}/x.wasm@${digestOf(ONE)}`;
    const store = new ModuleStore({ cacheDir: folder.path });
    assert.equal((await store.fetch(pinned)).origin, 'source');
    const again = await store.fetch(pinned);
    assert.deepEqual([again.origin, again.sourceError, server.requests], ['cache', undefined, 1]);
    const elsewhere = await store.fetch(`http://127.0.0.1:1/moved.wasm@${digestOf(ONE)}`);
    assert.equal(elsewhere.origin, 'cache');
  });

  it('refuses a module with another digest than the pinned one, and does not keep it', async () => {
    await using folder = await TemporaryFolder.create();
    await using server = await serving(() => TWO);
    const store = new ModuleStore({ cacheDir: folder.path });
    await assert.rejects(store.fetch(`${server.origin}/x.wasm@${digestOf(ONE)}`), {
      code: 'digest-mismatch',
      message: new RegExp(`expected ${digestOf(ONE)}, got ${digestOf(TWO)}`),
    });
    assert.deepEqual(await readdir(folder.path), []);
  });

  it('serves the last module when the source is down, after a restart too', async () => {
    await using folder = await TemporaryFolder.create();
    let respond = (response: ServerResponse): unknown => response.writeHead(200).end(ONE);
    await using server = await TestServer.start((_request, response) => respond(response));
    const url = `${server.origin}/x.wasm`;
    await new ModuleStore({ cacheDir: folder.path }).fetch(url);

    const restarted = new ModuleStore({ cacheDir: folder.path, timeouts: { idleMs: 30 } });
    const failures: [string, (response: ServerResponse) => unknown][] = [
      ['source-failed', (response) => response.writeHead(500).end()],
      ['not-wasm', (response) => response.writeHead(200).end('<html>')],
      ['source-timeout', () => undefined],
    ];
    for (const [code, failure] of failures) {
      respond = failure;
      const module = await restarted.fetch(url);
      assert.deepEqual([module.origin, module.digest, module.sourceError?.code], ['cache', digestOf(ONE), code]);
    }
    await server[Symbol.asyncDispose]();
    assert.equal((await restarted.fetch(url)).sourceError?.code, 'source-unreachable');
    await assert.rejects(restarted.fetch(`${server.origin}/other.wasm`), { code: 'source-unreachable' });
  });

  it('takes modules from nowhere but the cache when offline', async () => {
    await using folder = await TemporaryFolder.create();
    await using server = await serving(() => ONE);
    const store = new ModuleStore({ cacheDir: folder.path });
    await assert.rejects(store.fetch(`${server.origin}/x.wasm`, { offline: true }), { code: 'not-cached' });
    await store.fetch(`${server.origin}/x.wasm`);
    const module = await store.fetch(`${server.origin}/x.wasm`, { offline: true });
    assert.deepEqual([module.origin, module.sourceError, server.requests], ['cache', undefined, 1]);
  });

  it('sets a corrupt entry aside and fetches again', async () => {
    await using folder = await TemporaryFolder.create();
    await using server = await serving(() => ONE);
    const pinned = `${server.origin}/x.wasm@${digestOf(ONE)}`;
    const store = new ModuleStore({ cacheDir: folder.path });
    await store.fetch(pinned);
    await writeFile(entry(folder.path, ONE), ONE.subarray(0, 10));
    const module = await store.fetch(pinned);
    assert.deepEqual([module.origin, module.digest, server.requests], ['source', digestOf(ONE), 2]);
    assert.deepEqual(await readFile(entry(folder.path, ONE)), Buffer.from(ONE));
    assert.deepEqual(await readFile(entry(folder.path, ONE, 'corrupt')), Buffer.from(ONE.subarray(0, 10)));
  });

  it('does not serve a corrupt entry, or by a corrupt index, when the source is down', async () => {
    await using folder = await TemporaryFolder.create();
    const server = await serving(() => ONE);
    const url = `${server.origin}/x.wasm`;
    const store = new ModuleStore({ cacheDir: folder.path });
    await store.fetch(url);
    await server[Symbol.asyncDispose]();
    const [location = ''] = await readdir(join(folder.path, 'locations'));
    const path = join(folder.path, 'locations', location);
    const index = await readFile(path, 'utf8');
    for (const text of ['', '{', 'null', '{"digest":"sha256:../../x","shown":"","fetchedAt":""}']) {
      await writeFile(path, text);
      await assert.rejects(store.fetch(url), { code: 'source-unreachable' });
    }
    await writeFile(path, index);
    assert.equal((await store.fetch(url)).origin, 'cache');
    await writeFile(entry(folder.path, ONE), TWO);
    // Also the attempts after the one that finds it out.
    for (let attempt = 0; attempt < 2; attempt++) {
      await assert.rejects(store.fetch(url), {
        code: 'source-unreachable',
        message: /\(the copy in the cache was corrupt and is set aside\)$/,
      });
    }
  });

  it('keeps no secrets on disk', async () => {
    await using folder = await TemporaryFolder.create();
    await using server = await serving(() => ONE);
    const store = new ModuleStore({ cacheDir: folder.path });
    await store.fetch(`${server.origin.replace('//', '//joe:s3cr3t@')}/x.wasm?token=t0k3n`);
    const [name = ''] = await readdir(join(folder.path, 'locations'));
    assert.doesNotMatch(name + (await readFile(join(folder.path, 'locations', name), 'utf8')), /s3cr3t|t0k3n/);
  });

  it('uses a module that it cannot keep, and says so', async () => {
    await using folder = await TemporaryFolder.create();
    await using server = await serving(() => ONE);
    const cacheDir = join(folder.path, 'file');
    await writeFile(cacheDir, 'in the way');
    const module = await new ModuleStore({ cacheDir }).fetch(`${server.origin}/x.wasm`);
    assert.deepEqual([module.origin, module.cacheError?.code], ['source', 'cache-failed']);
  });

  it('reads files, also relative to the folder of the caller', async () => {
    await using folder = await TemporaryFolder.create();
    const path = join(folder.path, 'x.wasm');
    await writeFile(path, ONE);
    const store = new ModuleStore({ cacheDir: join(folder.path, 'cache') });
    assert.equal((await store.fetch('file://./x.wasm', { baseDir: folder.path })).url, pathToFileURL(path).href);
    await writeFile(path, 'broken by a half-finished copy');
    const module = await store.fetch(pathToFileURL(path).href);
    assert.deepEqual([module.origin, module.digest, module.sourceError?.code], ['cache', digestOf(ONE), 'not-wasm']);
  });

  it('limits the size', async () => {
    await using folder = await TemporaryFolder.create();
    await using server = await serving(() => ONE);
    const store = new ModuleStore({ cacheDir: folder.path, maxModuleBytes: 12 });
    await assert.rejects(store.fetch(`${server.origin}/x.wasm`), { code: 'module-too-large' });
  });

  it('may be larger than the default for policies of the cluster only, from the cache as well', async () => {
    await using folder = await TemporaryFolder.create();
    const path = join(folder.path, 'large.wasm');
    const bytes = Buffer.alloc(DEFAULT_MAX_MODULE_BYTES + 1);
    bytes.set(ONE);
    await writeFile(path, bytes);
    const store = new ModuleStore({
      cacheDir: join(folder.path, 'cache'),
      maxModuleBytes: LARGEST_MODULE_BYTES,
      tenantFolder: folder.path,
      sources: { ...DEFAULT_SOURCES, tenantModules: ['*'] },
    });
    const { digest } = await store.fetch(`file://${path}`);
    const validated = { isForTenant: true, isValidated: true };
    await assert.rejects(store.fetch(`file://${path}`, { isForTenant: true }), { code: 'module-too-large' });
    await assert.rejects(store.fetch(`file://${path}@${digest}`, validated), { code: 'module-too-large' });
    const { origin } = await store.fetch(`file://${path}@${digest}`);
    assert.equal(origin, 'cache');
  });
});

describe('concurrent fetches', () => {
  it('of one location share a download and see its progress', async () => {
    await using folder = await TemporaryFolder.create();
    await using server = await serving(() => ONE);
    const store = new ModuleStore({ cacheDir: folder.path });
    const received: number[] = [];
    const fetches = Array.from({ length: 50 }, async () =>
      store.fetch(`${server.origin}/x.wasm`, { onProgress: (bytes) => received.push(bytes) }),
    );
    const modules = await Promise.all(fetches);
    assert.equal(server.requests, 1);
    assert.equal(new Set(modules.map(({ bytes }) => bytes)).size, 1);
    assert.equal(received.filter((bytes) => bytes === ONE.length).length, 50);
    await store.fetch(`${server.origin}/x.wasm`);
    assert.equal(server.requests, 2);
  });

  it('go on when one of them gives up, and end when all have', async () => {
    await using folder = await TemporaryFolder.create();
    const pending: ServerResponse[] = [];
    await using server = await TestServer.start((_request, response) => pending.push(response));
    const store = new ModuleStore({ cacheDir: folder.path });
    const url = `${server.origin}/x.wasm`;
    const impatient = new AbortController();
    const patient = store.fetch(url);
    const gaveUp = assert.rejects(store.fetch(url, { signal: impatient.signal }), { name: 'AbortError' });
    while (pending.length === 0) {
      await new Promise(setImmediate);
    }
    impatient.abort();
    await gaveUp;
    pending.shift()?.writeHead(200).end(ONE);
    assert.equal((await patient).origin, 'source');

    const controller = new AbortController();
    const alone = assert.rejects(store.fetch(url, { signal: controller.signal }), { name: 'AbortError' });
    while (pending.length === 0) {
      await new Promise(setImmediate);
    }
    const closed = once(pending[0]!, 'close');
    controller.abort();
    await alone;
    await closed;
  });

  it('of several stores and threads on one folder leave whole entries only', async () => {
    await using folder = await TemporaryFolder.create();
    const modules = [0, 1, 2].map((index) => testModule(`module ${index} `.repeat(1000)));
    await using server = await TestServer.start(({ url = '' }, response) =>
      response.writeHead(200).end(modules[Number(url.slice(1))]),
    );
    const work = async (Store: typeof ModuleStore, cacheDir: string, origin: string): Promise<void> => {
      for (let round = 0; round < 5; round++) {
        await Promise.all([0, 1, 2].map(async (index) => new Store({ cacheDir }).fetch(`${origin}/${index}`)));
      }
    };
    const workers = [0, 1].map(
      () =>
        new Worker(
          `import(${JSON.stringify(new URL('module-store.ts', import.meta.url).href)}).then(({ ModuleStore }) =>
            (${work.toString()})(ModuleStore, ${JSON.stringify(folder.path)}, ${JSON.stringify(server.origin)}))`,
          { eval: true },
        ),
    );
    const ends = workers.map(async (worker) => once(worker, 'exit'));
    await Promise.all([work(ModuleStore, folder.path, server.origin), work(ModuleStore, folder.path, server.origin)]);
    assert.deepEqual(await Promise.all(ends), [[0], [0]]);
    assert.equal((await readdir(join(folder.path, 'sha256'))).length, modules.length);
    assert.equal((await readdir(join(folder.path, 'locations'))).length, modules.length);
    for (const module of modules) {
      assert.deepEqual(await readFile(entry(folder.path, module)), Buffer.from(module));
    }
  });
});
