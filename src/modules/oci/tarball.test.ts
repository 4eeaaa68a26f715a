import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, open, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';

import { create, list } from 'tar';
import { Header, type HeaderData } from 'tar/header';

import { TemporaryFolder } from '../testing/temporary-folder.ts';
import { LayoutFiles } from './layout-files.ts';
import { TarballWriter } from './tarball.ts';

const folder = await TemporaryFolder.create();
after(() => folder[Symbol.asyncDispose]());

let files = 0;
async function fileOf(bytes: Uint8Array): Promise<string> {
  files += 1;
  const path = join(folder.path, `${files}.tar`);
  await writeFile(path, bytes);
  return path;
}

async function read(path: string, name: string, maxBytes = 1_000_000): Promise<string> {
  return (await new LayoutFiles(path).read(name, maxBytes, 'the artifact')).toString();
}

/** An entry, also one that no writer makes. */
function entry(fields: HeaderData, content = ''): Buffer {
  const header = Buffer.alloc(512);
  new Header({ mode: 0o644, size: content.length, type: 'File', ...fields }).encode(header);
  return Buffer.concat([header, Buffer.from(content), Buffer.alloc((512 - (content.length % 512)) % 512)]);
}

/** Bytes that begin so, and go on with noise. */
function hex(start: string, length: number): Buffer {
  return Buffer.concat([Buffer.from(start, 'hex'), Buffer.alloc(length, 0xb6)]);
}

const END = Buffer.alloc(1024);

describe('a tarball', () => {
  it('of another program is read, with long names and extended headers', async () => {
    const root = join(folder.path, 'root');
    const deep = join(root, 'a'.repeat(90), 'b'.repeat(90));
    await mkdir(deep, { recursive: true });
    await writeFile(join(deep, 'c'), 'deep');
    await writeFile(join(root, 'index.json'), 'index');
    const path = join(folder.path, 'whole.tar');
    await create({ file: path, cwd: root }, ['.']);
    assert.equal(await read(path, 'index.json'), 'index');
    assert.equal(await read(path, `${'a'.repeat(90)}/${'b'.repeat(90)}/c`), 'deep');
  });

  it('that is written is one for other programs, and the same each time', async () => {
    const write = async (name: string): Promise<Buffer> => {
      const path = join(folder.path, name);
      await using file = await open(path, 'w');
      const writer = new TarballWriter(file);
      await writer.add('oci-layout', Buffer.from('{}'));
      await writer.add(`blobs/sha256/${'0'.repeat(64)}`, Buffer.alloc(512, 1));
      await writer.end();
      return await readFile(path);
    };
    assert.deepEqual(await write('one.tar'), await write('two.tar'));
    const seen: [string, number][] = [];
    await list({
      file: join(folder.path, 'one.tar'),
      strict: true,
      onReadEntry: ({ path, size }) => void seen.push([path, size]),
    });
    assert.deepEqual(seen, [
      ['oci-layout', 2],
      [`blobs/sha256/${'0'.repeat(64)}`, 512],
    ]);
  });

  it('has no files but its own: names are not paths, and links lead nowhere', async () => {
    const secret = await fileOf(Buffer.from('secret'));
    const path = await fileOf(
      Buffer.concat([
        entry({ path: 'index.json', type: 'SymbolicLink', linkpath: secret }),
        entry({ path: 'blobs/x', type: 'Link', linkpath: '../../etc/passwd' }),
        entry({ path: '../outside' }, 'inside'),
        entry({ path: 'kept' }, 'first'),
        entry({ path: './kept' }, 'last'),
        entry({ path: 'gone' }, 'a file'),
        entry({ path: 'gone', type: 'SymbolicLink', linkpath: 'kept' }),
        END,
      ]),
    );
    for (const name of ['index.json', 'blobs/x', 'gone', 'outside', `../${files}.tar`]) {
      await assert.rejects(read(path, name), { code: 'source-not-found' }, name);
    }
    assert.equal(await read(path, 'kept'), 'last');
  });

  it('may be a link to one, since an administrator names it', async () => {
    const path = await fileOf(Buffer.concat([entry({ path: 'a' }, 'content'), END]));
    await symlink(path, `${path}.link`);
    assert.equal(await read(`${path}.link`, 'a'), 'content');
  });

  it('may have no end, as some programs leave it out', async () => {
    assert.equal(await read(await fileOf(entry({ path: 'a' }, 'content')), 'a'), 'content');
  });

  it('is refused if a file is larger than expected', async () => {
    const path = await fileOf(entry({ path: 'a' }, 'content'));
    await assert.rejects(read(path, 'a', 6), { code: 'size-mismatch', message: /has 7 bytes: expected .* at most 6/ });
  });

  for (const [what, bytes, message] of [
    ['is compressed', gzipSync(entry({ path: 'a' }, 'content')), /it is compressed: decompress it/],
    ['is compressed, and large', gzipSync(randomBytes(100_000)), /it is compressed: decompress it \("gunzip"\)/],
    ['is compressed with xz', hex('fd377a585a000004e6d6b446', 2048), /decompress it \("unxz"\)/],
    ['is compressed with zstd', hex('28b52ffd04880000', 2048), /decompress it \("unzstd"\)/],
    ['is a zip file', hex('504b0304140000000800', 2048), /decompress it \("unzip"\)/],
    ['is noise', Buffer.alloc(4096, 0xa7), /it is no tarball, or damaged/],
    ['is empty', Buffer.of(), /it is no tarball, or damaged/],
    ['is text', Buffer.alloc(2048, 'text'), /it is no tarball, or damaged/],
    ['ends early', entry({ path: 'a', size: 10_000 }), /it ends early: copy it again/],
    ['has a file of negative size', entry({ path: 'a', size: -1 }), /it is no tarball, or damaged/],
    ['has a file of a size beyond all files', entry({ path: 'a', size: Number.MAX_SAFE_INTEGER }), /it ends early/],
    [
      'claims another size in an extended header',
      Buffer.concat([entry({ path: 'x', type: 'ExtendedHeader' }, '16 size=9999999\n'), entry({ path: 'a' }, 'b')]),
      /it ends early/,
    ],
  ] as const) {
    it(`is refused if it ${what}`, async () => {
      const path = await fileOf(bytes);
      await assert.rejects(read(path, 'a'), { code: 'file-unreadable', message });
    });
  }

  it('is refused if it has too many entries', async () => {
    const path = await fileOf(Buffer.concat(Array.from({ length: 20_001 }, () => entry({ path: 'a' }))));
    await assert.rejects(read(path, 'a'), { message: /expected at most 20000 entries/ });
  });
});
