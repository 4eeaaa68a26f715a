// The npm package, as `npm pack` makes it and `npm install -g` installs it: with the Node of the machine, and no compiler.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { packPackage } from '../../tools/package/pack.ts';
import { type CommandResult, ROOT, run } from './command.ts';

/** Programs of a machine with npm, and without a compiler. */
const PROGRAMS = ['node', 'npm', 'sh', 'bash', 'env'];
/** All that is published. */
const PUBLISHED =
  /^(?:package\.json|npm-shrinkwrap\.json|LICENSE|README\.md|SECURITY\.md|bin\/[\w-]+\.mjs|docs\/.+\.(?:md|svg|json)|examples\/.+|dist\/.+\.(?:js|br)|dist\/engine\/network-policy\/catalogue\/[\w-]+\.yaml)$/;

interface PackageFile {
  readonly version: string;
  readonly bin: Readonly<Record<string, string>>;
}

interface Lock {
  readonly packages: Readonly<Record<string, { readonly version?: string }>>;
}

describe('the npm package', { timeout: 300_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-package-'));
  const programs = join(folder, 'programs');
  const installed = join(folder, 'installed');
  let files: readonly string[];

  before(async () => {
    mkdirSync(programs);
    PROGRAMS.forEach((name) => symlinkSync(pathOf(name), join(programs, name)));
    const packed = await packPackage(folder);
    ({ files } = packed);
    const flags = ['--prefix', installed, '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
    const { code, stderr } = await command('npm', 'install', '--global', ...flags, packed.path);
    assert.equal(code, 0, stderr);
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  /** Runs a command with the programs above and those that were installed. */
  const command = (program: string, ...args: readonly string[]): Promise<CommandResult> =>
    run(program, args, { cwd: folder, env: { PATH: [join(installed, 'bin'), programs].join(delimiter) } });

  it('has what the command needs, and neither tests nor sources', () => {
    assert.deepEqual(
      files.filter((path) => !PUBLISHED.test(path) || /\.test\.|\/testing\//.test(path)),
      [],
    );
    for (const path of [
      'bin/portcullis.mjs',
      'dist/cli/program/main.js',
      'examples/policies.yml',
      'docs/cli.md',
      'LICENSE',
    ]) {
      assert.ok(files.includes(path), path);
    }
  });

  it('installs the versions of the lock file, and no others', () => {
    const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as Lock;
    const product = join(installed, 'lib', 'node_modules', 'portcullis');
    const found = globSync('node_modules/**/package.json', { cwd: product })
      .map((file) => dirname(file))
      .filter((path) => /(?:^|\/)node_modules\/(?:@[^/]+\/)?[^/]+$/.test(path));
    assert.ok(found.length > 40, `expected dependencies, got ${found.length}`);
    assert.deepEqual(
      found.map((path) => [
        path,
        (JSON.parse(readFileSync(join(product, path, 'package.json'), 'utf8')) as PackageFile).version,
      ]),
      found.map((path) => [path, lock.packages[path]?.version]),
    );
    assert.ok(!found.some((path) => path.endsWith('/typescript')));
  });

  it('installs a command that runs', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as PackageFile;
    assert.equal((await command('portcullis', '--version')).stdout, `${version}\n`);
  });

  it('evaluates a policy of its examples', async () => {
    const example = join(installed, 'lib', 'node_modules', 'portcullis', 'examples', 'required-labels');
    const { code, stdout, stderr } = await command('portcullis', 'test', example);
    assert.equal(code, 0, stdout + stderr);
  });

  it('brings the Node that it needs where that of the machine is 20', async () => {
    const program = join(installed, 'lib', 'node_modules', 'portcullis', 'bin', 'portcullis.mjs');
    const pretended = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.19.0' } });`;
    const flags = ['--import', `data:text/javascript,${encodeURIComponent(pretended)}`, program, '--version'];
    const { code, stderr } = await run(process.execPath, flags, { cwd: folder, env: { PATH: programs } });
    assert.equal(code, 0, stderr);
  });

  it('prints a completion script that bash accepts, and that completes commands', async () => {
    const script = `
      source <(portcullis completion bash)
      COMP_WORDS=(portcullis roll) COMP_CWORD=1 COMP_LINE='portcullis roll' COMP_POINT=15
      function_name=$(complete -p portcullis)
      function_name=\${function_name##*-F }
      "\${function_name%% *}" portcullis roll portcullis
      echo "\${COMPREPLY[@]}"`;
    const { stdout, stderr } = await command('bash', '-c', script);
    assert.equal(stdout.trim(), 'rollout', stderr);
  });
});

/** The program of the machine: not the Node that runs the tests. */
function pathOf(name: string): string {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((one) => one !== dirname(process.execPath));
  const found = folders.map((one) => join(one, name)).find(existsSync);
  return found ?? (name === 'node' ? process.execPath : execFileSync('which', [name], { encoding: 'utf8' }).trim());
}
