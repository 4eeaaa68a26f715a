import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { mkdir, readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

import { digestOf } from '../reference/digest.ts';
import { ModuleCache } from './module-cache.ts';
import { parseReference } from '../reference/module-reference.ts';
import { ModulesInUse } from './modules-in-use.ts';
import { TemporaryFolder } from '../testing/temporary-folder.ts';
import { testModule } from '../testing/test-module.ts';

const PROCESS = fileURLToPath(new URL('../testing/cache-process.ts', import.meta.url));
const KIB = 1024;
const MIB = KIB * KIB;
const DAY_SECONDS = 24 * 60 * 60;

function open(folder: TemporaryFolder, maxBytes: number): ModuleCache {
  return new ModuleCache(folder.path, { maxModuleBytes: MIB, maxBytes });
}

/** Stores modules of 64 KiB, which were used so many seconds ago. */
async function store(cache: ModuleCache, folder: TemporaryFolder, names: Record<string, number>): Promise<void> {
  for (const [name, age] of Object.entries(names)) {
    await cache.write(digestOf(sized(name)), sized(name));
    const used = Date.now() / 1000 - age;
    await utimes(pathOf(folder, name), used, used);
  }
}

function sized(name: string): Uint8Array {
  return testModule(name.padEnd(64 * KIB));
}

function pathOf(folder: TemporaryFolder, name: string, kind = 'sha256'): string {
  return join(folder.path, kind, `${digestOf(sized(name)).slice('sha256:'.length)}.wasm`);
}

/** Which of the modules are in the cache. */
async function present(folder: TemporaryFolder, names: readonly string[]): Promise<readonly string[]> {
  const files = new Set(await readdir(join(folder.path, 'sha256')));
  return names.filter((name) => files.has(pathOf(folder, name).split('/').at(-1) ?? ''));
}

/** A process that prints lines; killed at the end. */
class Child implements AsyncDisposable {
  readonly process: ChildProcess;
  #lines = 0;

  constructor(folder: TemporaryFolder, maxBytes: number, ...command: readonly string[]) {
    this.process = spawn(process.execPath, [PROCESS, folder.path, String(maxBytes), ...command], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.process.stdout?.on('data', (text: Buffer) => (this.#lines += text.toString().split('\n').length - 1));
  }

  async prints(lines: number): Promise<void> {
    while (this.#lines < lines) {
      assert.equal(this.process.exitCode, null, 'the process ended');
      await once(this.process.stdout!, 'data');
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      this.process.kill('SIGKILL');
      await once(this.process, 'exit');
    }
  }
}

describe('ModuleCache', () => {
  it('evicts the least recently used modules', async () => {
    await using folder = await TemporaryFolder.create();
    const cache = open(folder, MIB / 4 + 1000);
    await store(cache, folder, { a: 5 * DAY_SECONDS, b: 4 * DAY_SECONDS, c: 3 * DAY_SECONDS });
    // A use counts, not the time of the write.
    assert.ok(await cache.read(digestOf(sized('a'))));
    await store(cache, folder, { d: 0, e: 0 });
    assert.deepEqual(await present(folder, ['a', 'b', 'c', 'd', 'e']), ['a', 'c', 'd', 'e']);
  });

  it('evicts nothing that serves, also by the record of a process that was stopped, until days later', async () => {
    await using folder = await TemporaryFolder.create();
    const cache = open(folder, MIB / 4 + 1000);
    await store(cache, folder, { a: 9 * DAY_SECONDS, b: 8 * DAY_SECONDS });
    const inUse = new ModulesInUse(folder.path);
    inUse.set([digestOf(sized('a')), 'builtin:cel@1']);
    await inUse.stop();
    await store(cache, folder, { c: 7 * DAY_SECONDS, d: 0, e: 0 });
    assert.deepEqual(await present(folder, ['a', 'b', 'c', 'd', 'e']), ['a', 'c', 'd', 'e']);

    const [record = ''] = await readdir(join(folder.path, 'serving'));
    const then = Date.now() / 1000 - 8 * DAY_SECONDS;
    await utimes(join(folder.path, 'serving', record), then, then);
    await store(cache, folder, { f: 0, g: 0 });
    assert.deepEqual(await present(folder, ['a']), []);
    assert.deepEqual(await readdir(join(folder.path, 'serving')), []);
  });

  it('evicts what was just used, and may be about to serve, only at twice the size', async () => {
    await using folder = await TemporaryFolder.create();
    const cache = open(folder, MIB / 4);
    const names = Array.from({ length: 20 }, (_, index) => `module ${index}`);
    await store(cache, folder, Object.fromEntries(names.slice(0, 6).map((name) => [name, 0])));
    assert.equal((await present(folder, names)).length, 6);
    await store(cache, folder, Object.fromEntries(names.slice(6).map((name) => [name, 0])));
    const left = await present(folder, names);
    assert.ok(left.length >= 4 && left.length <= 9, `${left.length} are left`);
    assert.ok(left.includes('module 19'));
  });

  it('bounds the corrupt modules, and removes what writers that died left', async () => {
    await using folder = await TemporaryFolder.create();
    const old = join(folder.path, 'sha256', '.tmp-old');
    const corrupt = join(folder.path, 'corrupt');
    await mkdir(join(folder.path, 'sha256'));
    await writeFile(old, 'x');
    await utimes(old, 0, 0);
    await writeFile(join(folder.path, 'sha256', '.tmp-new'), 'x');
    await mkdir(corrupt);
    for (let index = 0; index < 20; index++) {
      await writeFile(join(corrupt, `${index}.wasm`), 'x');
      await utimes(join(corrupt, `${index}.wasm`), index, index);
    }
    await store(open(folder, MIB), folder, { a: 0 });
    assert.deepEqual(
      (await readdir(corrupt)).toSorted(),
      ['12', '13', '14', '15', '16', '17', '18', '19'].map((n) => `${n}.wasm`),
    );
    assert.deepEqual(
      (await readdir(join(folder.path, 'sha256'))).filter((name) => name.startsWith('.')),
      ['.tmp-new'],
    );
  });

  it('bounds the locations, also when all of them serve a module that it has', async () => {
    await using folder = await TemporaryFolder.create();
    const cache = open(folder, MIB / 4);
    await store(cache, folder, { a: 0 });
    const locations = join(folder.path, 'locations');
    await mkdir(locations);
    for (let index = 0; index < 20_100; index++) {
      writeFileSync(join(locations, `${index}.json`), '');
    }
    for (let index = 0; index < 10; index++) {
      await cache.remember(parseReference(`registry://example.com/a:v${index}`), digestOf(sized('a')));
    }
    const names = await readdir(locations);
    assert.ok(names.length <= 20_010, `${names.length} are left`);
    assert.notEqual(await cache.locate(parseReference('registry://example.com/a:v9')), undefined);
  });

  it('writes a location once, as long as it has the same module', async () => {
    await using folder = await TemporaryFolder.create();
    const cache = open(folder, MIB);
    const reference = parseReference('https://example.com/a.wasm');
    await cache.remember(reference, digestOf(sized('a')));
    const [name = ''] = await readdir(join(folder.path, 'locations'));
    const path = join(folder.path, 'locations', name);
    const { ino } = await stat(path);
    await cache.remember(reference, digestOf(sized('a')));
    assert.equal((await stat(path)).ino, ino);
    await cache.remember(reference, digestOf(sized('b')));
    assert.equal((await cache.locate(reference))?.digest, digestOf(sized('b')));
  });

  it('stores modules on a full disk, by evicting others', async (test) => {
    await using folder = await TemporaryFolder.create();
    // The disk is a file system in memory, in a namespace that ends with the process.
    const script = `mount -t tmpfs -o size=700k none "$1" && shift && for i in 1 2 3 4 5 6 7 8 9; do "$@" "module $i" 100000; done`;
    const command = [process.execPath, PROCESS, folder.path, '1000000000', 'store'];
    const { status, stdout, stderr } = spawnSync(
      'unshare',
      ['-Urm', 'sh', '-c', script, 'sh', folder.path, ...command],
      { encoding: 'utf8' },
    );
    if (status !== 0 && !stdout.includes('stored')) {
      test.skip(`no file system of its own: ${stderr}`);
      return;
    }
    assert.deepEqual(
      stdout.trim().split('\n'),
      Array.from({ length: 9 }, () => 'stored'),
    );
  });
});

describe('processes that share a cache', () => {
  const names = ['one', 'two', 'three'];

  it('evict nothing that serves in another one, not even after that has crashed', { timeout: 60_000 }, async () => {
    await using folder = await TemporaryFolder.create();
    const maxBytes = MIB;
    await using serving = new Child(folder, maxBytes, 'serve', ...names);
    await serving.prints(1);
    {
      await using one = new Child(folder, maxBytes, 'fill', String(100 * KIB));
      await using two = new Child(folder, maxBytes, 'fill', String(100 * KIB));
      await Promise.all([one.prints(40), two.prints(40)]);
      serving.process.kill('SIGKILL');
      await once(serving.process, 'exit');
      await Promise.all([one.prints(80), two.prints(80)]);
    }
    const cache = open(folder, maxBytes);
    for (const name of names) {
      assert.ok(await cache.read(digestOf(testModule(name))), `${name} is gone`);
    }
    const files = await readdir(join(folder.path, 'sha256'));
    // Twice the size, and what each process may write before it looks again.
    assert.ok(files.length * 100 * KIB < 2.5 * maxBytes, `${files.length} files are left`);
  });

  it('that are killed while they write leave whole modules only', { timeout: 60_000 }, async () => {
    await using folder = await TemporaryFolder.create();
    const isWriting = async (): Promise<boolean> =>
      (await readdir(join(folder.path, 'sha256')).catch(() => [])).some((name) => name.startsWith('.tmp-'));
    await using writer = new Child(folder, 1024 * MIB, 'fill', String(32 * MIB));
    await writer.prints(1);
    while (!(await isWriting())) {
      await new Promise(setImmediate);
    }
    writer.process.kill('SIGKILL');
    await once(writer.process, 'exit');
    const complete = (await readdir(join(folder.path, 'sha256'))).filter((name) => !name.startsWith('.tmp-'));
    assert.ok(complete.length > 0);
    for (const name of complete) {
      const bytes = await readFile(join(folder.path, 'sha256', name));
      assert.equal(`${digestOf(bytes)}.wasm`, `sha256:${name}`);
    }
  });
});

describe('the list of a module cache', () => {
  it('has modules by the locations that served them, each once, without evicted ones', async () => {
    await using folder = await TemporaryFolder.create();
    const cache = open(folder, MIB);
    await store(cache, folder, { a: 1, b: 2, evicted: 3 });
    const manifest = digestOf(Buffer.from('manifest'));
    const digest = digestOf(sized('a'));
    await cache.remember(parseReference('ghcr.io/a:v1'), digest, manifest);
    await cache.remember(parseReference(`ghcr.io/a:v1@${manifest}`), digest, manifest);
    await cache.remember(parseReference('https://example.com/a.wasm?signature=secret'), digest);
    await cache.remember(parseReference('ghcr.io/b:v1'), digestOf(sized('b')));
    await cache.remember(parseReference('ghcr.io/evicted:v1'), digestOf(Buffer.from('evicted')));
    await writeFile(join(folder.path, 'locations', 'other.json'), 'not JSON');
    const listed = (await cache.list()).map(({ shown, size, digest: found }) => [shown, size, found]);
    assert.deepEqual(listed, [
      ['https://example.com/a.wasm?…', sized('a').length, digest],
      ['registry://ghcr.io/a:v1', sized('a').length, digest],
      ['registry://ghcr.io/b:v1', sized('b').length, digestOf(sized('b'))],
    ]);

    await cache.remove(({ shown }) => shown === 'registry://ghcr.io/a:v1');
    assert.equal((await cache.read(digest))?.length, sized('a').length, 'another location served it');
    assert.equal(await cache.locate(parseReference(`ghcr.io/a@${manifest}`)), undefined);
    await cache.remove(({ digest: found }) => found === digest);
    assert.equal(await cache.read(digest), undefined);
    assert.deepEqual(
      (await cache.list()).map(({ shown }) => shown),
      ['registry://ghcr.io/b:v1'],
    );
  });
});
