// The parts of the image that need no download.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { platform } from 'node:process';
import { describe, it } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { dynamicLinking } from '../../tools/image/elf.ts';
import { NODE_FLAGS } from '../../bin/find-node.mjs';
import { imageConfig } from '../../tools/image/image-config.ts';
import { FileTree, gzip } from '../../tools/image/file-tree.ts';
import { unpack } from '../../tools/image/unpack.ts';

const MTIME = new Date(1_700_000_000_000);
const LONG = `${'a-long-folder/'.repeat(20)}file.js`;

function tree(order: 'first' | 'last'): FileTree {
  const add: readonly ((to: FileTree) => FileTree)[] = [
    (to) => to.file('opt/b.js', 'b'),
    (to) => to.file('opt/a/program', 'a', true),
    (to) => to.link('lib', 'usr/lib'),
    (to) => to.add('tmp', { kind: 'folder', mode: 0o1777 }),
    (to) => to.file(LONG, 'long'),
  ];
  return (order === 'first' ? add : add.toReversed()).reduce((to, one) => one(to), new FileTree());
}

describe('a layer', () => {
  it('has the same bytes in whatever order its files are added', async () => {
    const [first, last] = [tree('first').tarball(MTIME), tree('last').tarball(MTIME)];
    assert.deepEqual(first, last);
    assert.deepEqual(await gzip(first), await gzip(last));
  });

  it('is a tarball of its files and links, also of long names', async () => {
    const entries = await unpack(await gzip(tree('first').tarball(MTIME)));
    assert.deepEqual(
      new Map([...entries].map(([path, entry]) => [path, entry.kind === 'file' ? entry.content.toString() : entry])),
      new Map<string, unknown>([
        [LONG, 'long'],
        ['lib', { kind: 'link', target: 'usr/lib' }],
        ['opt/a/program', 'a'],
        ['opt/b.js', 'b'],
      ]),
    );
    assert.deepEqual(entries.get('opt/a/program'), { kind: 'file', content: Buffer.from('a'), isExecutable: true });
  });

  it('has no time of its compression', async () => {
    const compressed = await gzip(Buffer.from('content'));
    assert.equal(compressed.readUInt32LE(4), 0);
    assert.equal(gunzipSync(compressed).toString(), 'content');
  });
});

describe('the libraries of a program', () => {
  it('are those that its file names', { skip: platform !== 'linux' }, () => {
    const { interpreter, needed } = dynamicLinking(readFileSync(process.execPath), 'node');
    assert.match(interpreter ?? '', /^\/lib(?:64)?\/ld-linux-[\w-]+\.so\.\d$/);
    assert.ok(needed.includes('libc.so.6') && needed.includes('libstdc++.so.6'), needed.join(', '));
  });

  it('are not looked for in other files', () => {
    assert.throws(() => dynamicLinking(Buffer.from('#!/bin/sh\n'), 'script'), /^Error: script is no ELF file/);
  });
});

describe('the configuration of the image', () => {
  const origin = {
    version: '1.0.0',
    description: 'a policy engine',
    license: 'Apache-2.0',
    revision: 'abc',
    created: MTIME,
  };

  it('has a user other than root, by a numeric id that Kubernetes can check, and labels', () => {
    const { config, variant } = imageConfig('arm64', [], origin) as {
      variant: string;
      config: { User: string; Labels: object };
    };
    assert.equal(config.User, '65532:65532');
    assert.equal(variant, 'v8');
    assert.deepEqual(config.Labels, {
      'org.opencontainers.image.title': 'portcullis',
      'org.opencontainers.image.description': 'a policy engine',
      'org.opencontainers.image.version': '1.0.0',
      'org.opencontainers.image.revision': 'abc',
      'org.opencontainers.image.created': '2023-11-14T22:13:20Z',
      'org.opencontainers.image.licenses': 'Apache-2.0',
    });
  });

  it('starts Node with the flags of npm start', () => {
    const { config } = imageConfig('arm64', [], origin) as { config: { Entrypoint: readonly string[] } };
    const [node = '', ...rest] = config.Entrypoint;
    assert.match(node, /node$/);
    assert.deepEqual(rest.slice(0, -1), NODE_FLAGS);
    assert.deepEqual(NODE_FLAGS, ['--single-threaded-gc', '--max-semi-space-size=16']);
  });
});
