import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { FileWatch, type WatchedPaths } from './file-watch.ts';

/** Longer than any test, so that only notifications cause reads. */
const NO_POLL = 600_000;

describe('a watched file', () => {
  let folder: string;
  let watch: FileWatch | undefined;
  let reported: string[];
  let failures: string[];
  let arrived: (() => void) | undefined;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'portcullis-watch-'));
    reported = [];
    failures = [];
  });
  afterEach(() => {
    watch?.stop();
    rmSync(folder, { recursive: true });
  });

  async function start(paths: WatchedPaths, pollMs = NO_POLL): Promise<void> {
    watch = new FileWatch(
      paths,
      {
        changed: (contents) => {
          reported.push(contents.map(String).join('|'));
          arrived?.();
        },
        failed: (error) => {
          failures.push(error.message);
          arrived?.();
        },
      },
      pollMs,
    );
    await watch.start();
  }

  /** Resolves with the listener's next call after `act`. */
  async function next(act: () => void): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    arrived = resolve;
    act();
    await promise;
  }

  it('is reported at the start', async () => {
    writeFileSync(join(folder, 'a'), 'one');
    await start([join(folder, 'a')]);
    assert.deepEqual(reported, ['one']);
  });

  it('is reported with the others of a list that is made again before each read', async () => {
    writeFileSync(join(folder, 'a'), 'one');
    const list = (): Promise<readonly string[]> =>
      Promise.resolve(
        readdirSync(folder)
          .toSorted()
          .map((name) => join(folder, name)),
      );
    await start(list);
    await next(() => writeFileSync(join(folder, 'b'), 'two'));
    await next(() => renameSync(join(folder, 'b'), join(folder, 'c')));
    await next(() => unlinkSync(join(folder, 'a')));
    assert.deepEqual(reported, ['one', 'one|two', 'one|two', 'two']);
  });

  it('is reported when it is rewritten in place, and when it is replaced by a rename', async () => {
    const file = join(folder, 'a');
    writeFileSync(file, 'one');
    await start([file]);
    await next(() => writeFileSync(file, 'two'));
    await next(() => {
      writeFileSync(join(folder, 'b'), 'three');
      renameSync(join(folder, 'b'), file);
    });
    assert.deepEqual(reported, ['one', 'two', 'three']);
  });

  it('is reported each time a symbolic link in its path is swapped, as Kubernetes updates Secrets', async () => {
    const swapTo = (name: string): void => {
      rmSync(join(folder, '..next'), { force: true });
      symlinkSync(name, join(folder, '..next'));
      renameSync(join(folder, '..next'), join(folder, '..data'));
    };
    for (const version of ['v1', 'v2', 'v3']) {
      writeFileSync(join(folder, version), `content of ${version}`);
    }
    swapTo('v1');
    symlinkSync('..data', join(folder, 'tls.crt'));
    await start([join(folder, 'tls.crt')]);
    await next(() => swapTo('v2'));
    await next(() => swapTo('v3'));
    assert.deepEqual(reported, ['content of v1', 'content of v2', 'content of v3']);
  });

  it('is polled when there are no notifications', async () => {
    const file = join(folder, 'a');
    writeFileSync(file, 'one');
    await start([file], 10);
    await next(() => writeFileSync(file, 'two'));
    assert.deepEqual(reported, ['one', 'two']);
  });

  it('is reported once with the others that changed', async () => {
    const files = ['cert', 'key'].map((name) => join(folder, name));
    for (const file of files) {
      writeFileSync(file, '1');
    }
    await start(files);
    await next(() => {
      for (const file of files) {
        writeFileSync(file, '2');
      }
    });
    assert.deepEqual(reported, ['1|1', '2|2']);
  });

  it('that cannot be read is reported as a failure once, and its content when it is back', async () => {
    const file = join(folder, 'a');
    writeFileSync(file, 'one');
    await start([file]);
    await next(() => unlinkSync(file));
    await watch?.check();
    assert.equal(failures.length, 1);
    assert.match(failures[0] ?? '', /ENOENT/);
    await next(() => writeFileSync(file, 'two'));
    assert.deepEqual(reported, ['one', 'two']);
  });
});
