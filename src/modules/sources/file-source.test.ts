import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';

import { readModuleFile } from './file-source.ts';
import { parseReference } from '../reference/module-reference.ts';
import type { FileReference } from '../reference/module-reference.ts';
import { TemporaryFolder } from '../testing/temporary-folder.ts';
import { testModule } from '../testing/test-module.ts';

function reference(path: string): FileReference {
  return parseReference(pathToFileURL(path).href) as FileReference;
}

describe('readModuleFile', () => {
  it('reads a module', async () => {
    await using folder = await TemporaryFolder.create();
    const path = join(folder.path, 'a b#.wasm');
    await writeFile(path, testModule('content'));
    assert.deepEqual(await readModuleFile(reference(path), 1000), testModule('content'));
  });

  it('refuses what is not there, a folder, and a file that is too large or no module', async () => {
    await using folder = await TemporaryFolder.create();
    const path = (name: string): string => join(folder.path, name);
    await assert.rejects(readModuleFile(reference(path('none')), 1000), {
      code: 'file-unreadable',
      message: /no such file/,
    });
    await mkdir(path('folder'));
    await assert.rejects(readModuleFile(reference(path('folder')), 1000), {
      code: 'file-unreadable',
      message: /a folder/,
    });
    await writeFile(path('large'), testModule('content'));
    await assert.rejects(readModuleFile(reference(path('large')), 10), { code: 'module-too-large' });
    await writeFile(path('text'), 'nonsense');
    await assert.rejects(readModuleFile(reference(path('text')), 1000), { code: 'not-wasm', message: /plain text/ });
  });

  it('does not wait for a pipe that nobody writes to', { skip: process.platform === 'win32' }, async () => {
    await using folder = await TemporaryFolder.create();
    const path = join(folder.path, 'pipe');
    execFileSync('mkfifo', [path]);
    await assert.rejects(readModuleFile(reference(path), 1000), { code: 'file-unreadable', message: /pipe/ });
    await assert.rejects(readModuleFile(reference('/dev/zero'), 1000), { code: 'file-unreadable' });
  });
});
