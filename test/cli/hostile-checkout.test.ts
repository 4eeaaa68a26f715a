// Checkouts of pull requests: what their authors wrote decides what is checked, and neither reads files of others nor runs programs.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { COMMAND, type CommandResult, portcullis, run } from './command.ts';

const SECRET = 'hunter2-of-somebody-else';
const policy = (name: string): string =>
  `apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: ${name}, namespace: shop}\nspec: {podSelector: {}}\n`;

let outside = '';
before(() => {
  outside = mkdtempSync(join(tmpdir(), 'portcullis-outside-'));
  writeFileSync(join(outside, 'secret.yaml'), `token: [${SECRET}\n`);
  writeFileSync(join(outside, 'policy.yaml'), policy(SECRET));
});
after(() => rmSync(outside, { recursive: true }));

/** A repository with one commit, and changes after it. */
class Checkout implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'portcullis-checkout-'));

  constructor() {
    this.git('init', '-q');
    this.write('same.yaml', policy('same'));
    this.write('old.yaml', policy('old'));
    this.commit();
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true });
  }

  git(...args: readonly string[]): string {
    const user = ['-c', 'user.name=a', '-c', 'user.email=a@example.com'];
    return execFileSync('git', ['-C', this.folder, ...user, ...args], { encoding: 'utf8', stdio: 'pipe' });
  }

  commit(): void {
    this.git('add', '-A');
    this.git('commit', '-qm', 'change');
  }

  write(name: string, content: string): string {
    const path = join(this.folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    return path;
  }

  link(target: string, name: string): void {
    symlinkSync(target, join(this.folder, name));
  }

  async check(base = 'HEAD~1', cwd = this.folder, env: Readonly<Record<string, string>> = {}): Promise<CommandResult> {
    const args = ['netpol', 'check', '--diff', base, '--provider', 'cilium@1.16.0'];
    return await run(process.execPath, [COMMAND, ...args], { cwd, env });
  }
}

const assertSilent = ({ stdout, stderr }: CommandResult): void =>
  assert.doesNotMatch(`${stdout}${stderr}`, new RegExp(SECRET));

describe('netpol check --diff', { concurrency: 2 }, () => {
  for (const [what, target] of [
    ['a file with secrets', () => join(outside, 'secret.yaml')],
    ['a manifest of somebody else', () => join(outside, 'policy.yaml')],
    ['the environment', () => '/proc/self/environ'],
    ['standard input', () => '/dev/stdin'],
    ["Git's own configuration", () => '.git/config'],
    ['a file that Git does not track', () => 'untracked.yaml'],
    ['nothing', () => 'gone.yaml'],
    ['a folder', () => '.'],
    ['itself', () => 'link.yaml'],
  ] as const) {
    it(`refuses a link to ${what}`, async () => {
      using checkout = new Checkout();
      checkout.link(target(), 'link.yaml');
      checkout.commit();
      checkout.write('untracked.yaml', `token: [${SECRET}\n`);
      const result = await checkout.check();
      assertSilent(result);
      assert.match(
        result.stderr,
        /^error: link\.yaml is a symbolic link to what is no file of this repository: it is not read/,
      );
      assert.equal(result.code, 1);
    });
  }

  it('refuses a file below a folder that became a link', async () => {
    using checkout = new Checkout();
    checkout.write('sub/policy.yaml', policy('sub'));
    checkout.commit();
    rmSync(join(checkout.folder, 'sub'), { recursive: true });
    checkout.link(outside, 'sub');
    const result = await checkout.check();
    assertSilent(result);
    assert.match(result.stderr, /^error: sub\/policy\.yaml is a symbolic link to what is no file/);
  });

  it('follows a link to a file of the repository', async () => {
    using checkout = new Checkout();
    checkout.link('same.yaml', 'link.yaml');
    checkout.commit();
    const { stdout } = await checkout.check();
    assert.match(stdout, /^1 policy/m);
  });

  it('checks what is committed, staged, changed and renamed, and nothing else', async () => {
    using checkout = new Checkout();
    checkout.write('committed.yaml', policy('committed'));
    checkout.git('mv', 'old.yaml', 'renamed.yaml');
    checkout.write('with space é.yaml', policy('spaced'));
    checkout.commit();
    checkout.write('staged.yaml', policy('staged'));
    checkout.git('add', '-A');
    checkout.write('committed.yaml', policy('edited'));
    checkout.write('same.yaml', policy('same').replaceAll('\n', '\r\n'));
    checkout.write('untracked.yaml', policy('untracked'));
    const args = ['netpol', 'check', '--diff', 'HEAD~1', '-o', 'json', '--provider', 'cilium@1.16.0'];
    const { stdout } = await run(process.execPath, [COMMAND, ...args], { cwd: checkout.folder });
    const names = [...stdout.matchAll(/"policy": "shop\/(\w+)"/g)].map(([, name = '']) => name);
    assert.deepEqual(names.toSorted(), ['edited', 'old', 'spaced', 'staged']);
  });

  it('runs no program that the configuration of the checkout names', async () => {
    using checkout = new Checkout();
    const ran = join(checkout.folder, 'ran');
    const program = checkout.write('program.sh', `#!/bin/sh\necho "$0 $*" >> ${ran}\ncat\n`);
    chmodSync(program, 0o755);
    checkout.write('.gitattributes', '*.yaml filter=evil diff=evil\n');
    checkout.write('new.yaml', policy('new'));
    checkout.commit();
    for (const [key, value] of [
      ['core.fsmonitor', program],
      ['core.pager', program],
      ['core.sshCommand', program],
      ['core.alternateRefsCommand', program],
      ['core.hooksPath', '.'],
      ['filter.evil.clean', program],
      ['filter.evil.smudge', program],
      ['filter.evil.process', program],
      ['diff.external', program],
      ['diff.evil.command', program],
      ['diff.evil.textconv', program],
      ['alias.ls-files', `!${program}`],
      ['pager.ls-tree', program],
      ['remote.origin.url', `ext::${program}`],
      ['remote.origin.promisor', 'true'],
      ['remote.origin.partialclonefilter', 'blob:none'],
      ['extensions.partialClone', 'origin'],
      ['protocol.ext.allow', 'always'],
    ] as const) {
      checkout.git('config', key, value);
    }
    rmSync(ran, { force: true });
    checkout.write('new.yaml', policy('newer'));
    const { stdout } = await checkout.check();
    assert.match(stdout, /^1 policy/m);
    await checkout.check('0123456789012345678901234567890123456789');
    assert.ok(!existsSync(ran), 'a program ran');
  });

  it('refuses a configuration whose work tree is somewhere else', async () => {
    using checkout = new Checkout();
    const victim = join(outside, 'victim');
    mkdirSync(join(victim, 'evil'), { recursive: true });
    writeFileSync(join(victim, 'new.yaml'), `token: [${SECRET}\n`);
    checkout.write('new.yaml', policy('new'));
    checkout.commit();
    execFileSync('cp', ['-r', join(checkout.folder, '.git'), join(victim, 'evil/.git')]);
    execFileSync('git', [
      '-C',
      checkout.folder,
      'config',
      '-f',
      join(victim, 'evil/.git/config'),
      'core.worktree',
      victim,
    ]);
    const result = await checkout.check('HEAD~1', join(victim, 'evil'));
    assertSilent(result);
    assert.match(result.stderr, /^error: the configuration of this repository has its work tree elsewhere/);
  });

  it('refuses a bare repository among the files', async () => {
    using checkout = new Checkout();
    execFileSync('cp', ['-r', join(checkout.folder, '.git'), join(checkout.folder, 'data')]);
    assert.match((await checkout.check('HEAD', join(checkout.folder, 'data'))).stderr, /^error: git cannot compare/);
  });

  it('works in a linked work tree, in a folder below, and where variables name another repository', async () => {
    using checkout = new Checkout();
    checkout.write('deep/er/new.yaml', policy('new'));
    checkout.commit();
    const other = join(checkout.folder, 'other');
    checkout.git('worktree', 'add', '-q', other);
    for (const cwd of [join(other, 'deep'), join(checkout.folder, 'deep/er')]) {
      assert.match(
        (await checkout.check('HEAD~1', cwd, { GIT_DIR: outside, GIT_WORK_TREE: outside })).stdout,
        /^1 policy/m,
      );
    }
  });
});

describe('a folder with links', { concurrency: 2 }, () => {
  for (const args of [
    ['netpol', 'check', '--provider', 'cilium@1.16.0', '-R', '-f', '.'],
    ['apply', '--kubeconfig', 'no', '-f', '.'],
    ['governance', 'rights', '-f', '.'],
    ['test'],
    ['export', '.'],
  ]) {
    it(`out of it is refused by ${args.join(' ')}`, async () => {
      using checkout = new Checkout();
      for (const name of ['link.yaml', 'portcullis-test.yml']) {
        checkout.link(join(outside, 'secret.yaml'), name);
      }
      const result = await portcullis(args, { cwd: checkout.folder });
      assertSilent(result);
      assert.match(
        result.stderr,
        /^error: (?:link\.yaml|portcullis-test\.yml) is a symbolic link out of \.: it is not read/,
      );
    });
  }

  it('within it is read, as Kubernetes mounts a ConfigMap', async () => {
    using checkout = new Checkout();
    checkout.write('mounted/..data_1/policy.yaml', policy('mounted'));
    checkout.link('..data_1', 'mounted/..data');
    checkout.link('..data/policy.yaml', 'mounted/policy.yaml');
    const result = await portcullis(['netpol', 'check', '--provider', 'cilium@1.16.0', '-f', 'mounted'], {
      cwd: checkout.folder,
    });
    assert.match(result.stdout, /^1 policy/m);
  });
});
