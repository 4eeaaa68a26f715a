import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { openFile, readWholeFile, readWholeFileSync } from './index.ts';

const folder = mkdtempSync(join(tmpdir(), 'portcullis-read-file-'));
after(() => rmSync(folder, { recursive: true }));

function file(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

const readers = {
  readWholeFile,
  readWholeFileSync: async (path: string, maxBytes?: number): Promise<Buffer> => readWholeFileSync(path, maxBytes),
};

for (const [name, read] of Object.entries(readers)) {
  describe(name, () => {
    it('reads all of a file, also through links', async () => {
      const content = 'ab'.repeat(100_000);
      const path = file('whole', content);
      symlinkSync(path, join(folder, `${name}.link`));
      assert.equal((await read(join(folder, `${name}.link`))).toString(), content);
    });

    it('reads a file of exactly the limit, and no larger one', async () => {
      const path = file('limit', 'abcd');
      assert.equal((await read(path, 4)).toString(), 'abcd');
      await assert.rejects(read(path, 3), { code: 'file-too-large', message: /expected at most 3 bytes/ });
    });

    it('reads a file whose size the system does not say', async () => {
      assert.match((await read('/proc/self/status')).toString(), /^Name:/);
    });

    it('reads nothing of /dev/null', async () => {
      assert.equal((await read('/dev/null')).length, 0);
    });

    for (const [what, message, create] of [
      ['a named pipe', /named pipe/, (path) => void execFileSync('mkfifo', [path])],
      ['a link to a named pipe', /named pipe/, linkToPipe],
      ['a device', /socket or a device/, (path) => symlinkSync('/dev/zero', path)],
      ['a folder', /it is a folder/, (path) => symlinkSync(folder, path)],
      ['standard input by another name', /named pipe|device|ENXIO|no such/, (path) => symlinkSync('/dev/stdin', path)],
    ] as const satisfies readonly (readonly [string, RegExp, (path: string) => void])[]) {
      it(`refuses ${what}, and does not wait for it`, async () => {
        const path = join(folder, `${name} ${what}`);
        create(path);
        await assert.rejects(read(path), { message });
      });
    }
  });
}

function linkToPipe(path: string): void {
  execFileSync('mkfifo', [`${path}.pipe`]);
  symlinkSync(`${path}.pipe`, path);
}

describe('openFile', () => {
  it('refuses a socket', async () => {
    const path = join(folder, 'socket');
    const server = createServer().listen(path);
    await new Promise((resolve) => server.once('listening', resolve));
    await assert.rejects(openFile(path));
    server.close();
  });
});
