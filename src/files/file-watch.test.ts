import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { FileWatch } from './file-watch.ts';

/** Longer than any test: what is told, is told because of a notification. */
const NO_POLL = 600_000;

describe('a watched file', () => {
  let folder: string;
  let watch: FileWatch | undefined;
  let told: string[];
  let failures: string[];
  let arrived: (() => void) | undefined;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'portcullis-watch-'));
    told = [];
    failures = [];
  });
  afterEach(() => {
    watch?.stop();
    rmSync(folder, { recursive: true });
  });

  async function start(paths: readonly string[], pollMs = NO_POLL): Promise<void> {
    watch = new FileWatch(
      paths,
      {
        changed: (contents) => {
          told.push(contents.map(String).join('|'));
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

  /** Resolves when the listener is told the next thing after `act`. */
  async function next(act: () => void): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    arrived = resolve;
    act();
    await promise;
  }

  it('is told at the start', async () => {
    writeFileSync(join(folder, 'a'), 'one');
    await start([join(folder, 'a')]);
    assert.deepEqual(told, ['one']);
  });

  it('is told when it is rewritten in place, and when it is replaced by a rename', async () => {
    const file = join(folder, 'a');
    writeFileSync(file, 'one');
    await start([file]);
    await next(() => writeFileSync(file, 'two'));
    await next(() => {
      writeFileSync(join(folder, 'b'), 'three');
      renameSync(join(folder, 'b'), file);
    });
    assert.deepEqual(told, ['one', 'two', 'three']);
  });

  it('is told when a link on its way is swapped, as Kubernetes updates Secrets, and every time that happens', async () => {
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
    assert.deepEqual(told, ['content of v1', 'content of v2', 'content of v3']);
  });

  it('is told by polling where no notification comes', async () => {
    const file = join(folder, 'a');
    writeFileSync(file, 'one');
    await start([file], 10);
    await next(() => writeFileSync(file, 'two'));
    assert.deepEqual(told, ['one', 'two']);
  });

  it('is told once with the others that changed with it', async () => {
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
    assert.deepEqual(told, ['1|1', '2|2']);
  });

  it('that cannot be read is told as a failure once, and its content when it is back', async () => {
    const file = join(folder, 'a');
    writeFileSync(file, 'one');
    await start([file]);
    await next(() => unlinkSync(file));
    await watch?.check();
    assert.equal(failures.length, 1);
    assert.match(failures[0] ?? '', /ENOENT/);
    await next(() => writeFileSync(file, 'two'));
    assert.deepEqual(told, ['one', 'two']);
  });
});
