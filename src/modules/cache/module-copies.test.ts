import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';

import { type Digest, digestOf } from '../reference/digest.ts';
import { ModuleCopies, type ModuleCopy } from './module-copies.ts';
import { TemporaryFolder } from '../testing/temporary-folder.ts';

const BYTES = Buffer.alloc(3_000_000, 7);
const DIGEST = digestOf(BYTES);

async function* chunks(...parts: readonly Uint8Array[]): AsyncGenerator<Uint8Array, void> {
  yield* parts;
}

async function contentOf(copies: ModuleCopies, copy: ModuleCopy | undefined): Promise<Buffer> {
  assert.ok(copy);
  const parts: Uint8Array[] = [];
  for await (const part of copies.read(copy)) {
    parts.push(part);
  }
  return Buffer.concat(parts);
}

async function opened(folder: TemporaryFolder): Promise<ModuleCopies> {
  const copies = new ModuleCopies(join(folder.path, 'copies'));
  await copies.open();
  return copies;
}

describe('ModuleCopies', () => {
  it('belong to one PolicyServer, and are there after a restart', async () => {
    await using folder = await TemporaryFolder.create();
    const copies = await opened(folder);
    await copies.write('default', DIGEST, chunks(BYTES.subarray(0, 10), BYTES.subarray(10)), BYTES.length);
    assert.deepEqual(copies.get('default', DIGEST), { policyServer: 'default', digest: DIGEST, size: BYTES.length });
    assert.equal(copies.get('other', DIGEST), undefined);
    const again = await opened(folder);
    assert.ok((await contentOf(again, again.get('default', DIGEST))).equals(BYTES));
    await again.remove('default', DIGEST);
    assert.deepEqual([...(await opened(folder)).list()], []);
  });

  it('are not written with another digest, beyond the size, or outside of their folder', async () => {
    await using folder = await TemporaryFolder.create();
    const copies = await opened(folder);
    const write = (policyServer: string, digest: Digest, maxBytes: number): Promise<unknown> =>
      copies.write(policyServer, digest, chunks(BYTES), maxBytes);
    await assert.rejects(
      write('default', digestOf(Buffer.from('x')), BYTES.length),
      /expected a module with the digest/,
    );
    await assert.rejects(write('default', DIGEST, 10), RangeError);
    for (const name of ['../x', '..', '.', '', 'a/b', 'A', 'x\0']) {
      await assert.rejects(write(name, DIGEST, BYTES.length), /no folder can have the name/);
    }
    assert.deepEqual([...copies.list()], []);
    assert.deepEqual(await readdir(folder.path, { recursive: true }), ['copies', 'copies/default']);
  });

  it('stay when a receiver goes away in the middle', async () => {
    await using folder = await TemporaryFolder.create();
    const copies = await opened(folder);
    const copy = await copies.write('default', DIGEST, chunks(BYTES), BYTES.length);
    const content = copies.read(copy);
    await content.next();
    // As a stream of it does that is destroyed.
    await assert.rejects(content.throw(new Error('Premature close')), /Premature close/);
    assert.ok((await contentOf(copies, copies.get('default', DIGEST))).equals(BYTES));
  });

  it('that are damaged are removed: at the start, and when they are read, before they are complete', async () => {
    await using folder = await TemporaryFolder.create();
    const copies = await opened(folder);
    const copy = await copies.write('default', DIGEST, chunks(BYTES), BYTES.length);
    const path = join(folder.path, 'copies', 'default', `${DIGEST.slice('sha256:'.length)}.wasm`);
    await writeFile(path, Buffer.alloc(BYTES.length, 8));
    let received = 0;
    await assert.rejects(async () => {
      for await (const part of copies.read(copy)) {
        received += part.length;
      }
    }, /is damaged/);
    assert.ok(received < BYTES.length);
    assert.equal(copies.get('default', DIGEST), undefined);

    await copies.write('default', DIGEST, chunks(BYTES), BYTES.length);
    await writeFile(path, (await readFile(path)).subarray(1));
    await writeFile(join(folder.path, 'copies', 'default', '.tmp-left'), 'x');
    await mkdir(join(folder.path, 'copies', 'default', 'folder.wasm'));
    assert.deepEqual([...(await opened(folder)).list()], []);
    assert.deepEqual(await readdir(join(folder.path, 'copies', 'default')), []);
  });
});
