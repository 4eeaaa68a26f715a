// Files that would take a command's time or memory without end: each is refused, with the place of what is wrong.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { EXAMPLES, portcullis, ROOT, run } from './command.ts';

const HEAD = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n';
const POLICY = join(ROOT, EXAMPLES, 'replica-limit/policy.yaml');

/** Nine to the power of nine texts. */
const BOMB = Array.from({ length: 9 }, (_, at) =>
  at === 0
    ? '  a0: &a0 [x, x, x, x, x, x, x, x, x]\n'
    : `  a${at}: &a${at} [${Array(9)
        .fill(`*a${at - 1}`)
        .join()}]\n`,
).join('');

let folder = '';
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-hostile-files-'));
  mkdirSync(join(folder, 'pipes'));
  execFileSync('mkfifo', [join(folder, 'pipes', 'pipe.yaml')]);
  for (const [name, content] of Object.entries({
    'bomb.yaml': `${HEAD}${BOMB}`,
    'cycle.yaml': `${HEAD}  a: &a\n    b: *a\n`,
    'long.yaml': `${HEAD}  a: &a ${'x'.repeat(1_000_000)}\n  b: [${Array(9_000).fill('*a').join()}]\n`,
    'deep.json': `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":${'['.repeat(200_000)}${']'.repeat(200_000)}}`,
    'layout.tar.gz': gzipSync(randomBytes(100_000)),
    'policy.yaml':
      'apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: a}\nspec: {podSelector: {}}\n',
  })) {
    writeFileSync(join(folder, name), content);
  }
});
after(() => rmSync(folder, { recursive: true }));

/** Commands that read a file, as their arguments before and after its name. */
const READERS: readonly (readonly string[])[] = [
  ['apply', '--kubeconfig', 'no', '-f', 'FILE'],
  ['netpol', 'check', '--provider', 'cilium@1.16.0', '-f', 'FILE'],
  ['test', '-p', POLICY, 'FILE'],
  ['test', 'FILE'],
  ['run', POLICY, '-r', 'FILE'],
  ['run', 'FILE', '-r', 'policy.yaml'],
  ['run', 'builtin:cel', '-s', 'FILE', '-r', 'policy.yaml'],
  ['run', POLICY, '-r', 'policy.yaml', '--sources-path', 'FILE'],
  ['governance', 'rights', '-f', 'FILE'],
  ['dryrun', '-p', 'FILE', 'policy.yaml'],
  ['get', 'pods', '--kubeconfig', 'FILE'],
  ['export', 'FILE'],
];

const FAULTS: Readonly<Record<string, RegExp>> = {
  'bomb.yaml': /bomb\.yaml\b.*(?:line |:)11\b.*the aliases up to \*a5 stand for more than 1000000 values/s,
  'cycle.yaml': /cycle\.yaml\b.*(?:line |:)6\b.*the alias \*a stands for a value that it is part of/s,
  'long.yaml': /long\.yaml\b.*(?:line |:)6\b.*stand for more than .* 16777216 characters/s,
  'pipes/pipe.yaml': /pipe\.yaml\b.*it is a named pipe: expected a file/s,
};

describe('a hostile file', { concurrency: 2 }, () => {
  for (const args of READERS) {
    const shown = args.map((arg) => arg.replace(ROOT, '')).join(' ');
    for (const [file, fault] of Object.entries(FAULTS)) {
      it(`${file} is refused by ${shown}`, async () => {
        const result = await portcullis(
          args.map((arg) => (arg === 'FILE' ? file : arg)),
          { cwd: folder },
        );
        assert.match(`${result.stdout}${result.stderr}`, fault);
        assert.notEqual(result.code, 0);
      });
    }
  }

  it('in a folder is refused as well', async () => {
    const result = await portcullis(['apply', '-R', '-f', 'pipes'], { cwd: folder });
    assert.match(result.stderr, /^error: pipes\/pipe\.yaml cannot be read: it is a named pipe/);
  });

  it('of JSON is refused for its depth', async () => {
    const result = await portcullis(['scaffold', 'request', 'deep.json'], { cwd: folder });
    assert.match(result.stderr, /deep\.json.*(?:nested too deep|nesting exceeded)/);
  });

  for (const [file, message] of [
    ['layout.tar.gz', /layout\.tar\.gz is not a tarball with an OCI layout: it is compressed.*gunzip/],
    ['pipes/pipe.yaml', /pipe\.yaml.*it is a named pipe: expected a file/],
    ['/dev/zero', /\/dev\/zero.*it is a socket or a device: expected a file/],
  ] as const) {
    it(`${file} is refused by load`, async () => {
      assert.match((await portcullis(['load', '--input', file], { cwd: folder })).stderr, message);
    });
  }
});

describe('a pipe of the shell', () => {
  it('is read as standard input is', async () => {
    const command = `node ${join(ROOT, 'bin/portcullis.mjs')} netpol check --provider cilium@1.16.0 -f <(cat policy.yaml)`;
    assert.match((await run('bash', ['-c', command], { cwd: folder })).stdout, /^1 policy, 1 provider: 1 accepted/m);
  });
});
