// `portcullis serve` with a module that is larger than modules may be without a word of the administrator.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { ServedPolicyStatus } from '../../src/server/index.ts';
import { guest, moduleBytes, TestFolder } from '../server/harness.ts';
import { LoggingProcess } from './logging-process.ts';

const MIB = 2 ** 20;
const CUSTOM_SECTION = 0;
/** A name of one letter, then the content. */
const SECTION_NAME = [1, 0x70];

/** A module with a custom section that makes it as large. */
function padded(module: Uint8Array, bytes: number): Uint8Array {
  const size = bytes + SECTION_NAME.length;
  const length = [0, 7, 14, 21, 28].map((shift) => ((size >>> shift) & 0x7f) | (shift < 28 ? 0x80 : 0));
  return Buffer.concat([module, Buffer.from([CUSTOM_SECTION, ...length, ...SECTION_NAME]), Buffer.alloc(bytes)]);
}

async function statusWith(folder: TestFolder, args: readonly string[]): Promise<ServedPolicyStatus> {
  const data = ['--policies', folder.policiesFile, '--policies-download-dir', folder.dataDir];
  const ports = ['--addr', '127.0.0.1', '--port', '0', '--readiness-probe-port', '0'];
  await using server = new LoggingProcess(['serve', ...data, ...ports, ...args]);
  const { operations } = await server.says('policy server ready');
  return (await (await fetch(`${String(operations)}/policies/large`)).json()) as ServedPolicyStatus;
}

describe('a module of 70 MiB', () => {
  it('is refused with the field that allows it, and serves where the administrator does', async () => {
    await using folder = await TestFolder.create();
    const file = join(folder.path, 'large.wasm');
    await writeFile(file, padded(await moduleBytes(guest('accept')), 70 * MIB));
    await folder.write({ large: { module: `file://${file}` } });
    const refused = await statusWith(folder, []);
    assert.equal(refused.phase, 'Error');
    assert.match(
      refused.message,
      /large\.wasm is too large: expected at most 67108864 bytes, got 73\d+; spec\.maxModuleSize of the PolicyServer allows larger ones, and so does --max-module-size of serve/,
    );
    const served = await statusWith(folder, ['--max-module-size', '80']);
    assert.equal(served.phase, 'Active', served.message);
  });
});
