// Which Node runs the project: the running one when it is recent enough, else the copy that npm installed.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import semver from 'semver';
import { NODE_FLAGS } from '../bin/find-node.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
/** The oldest line of Node that may start the project; README.md names it. */
const OLDEST = '20.19.0';

/** Runs a script in a process that takes itself for another Node. */
function runAs(versions: { node: string; platform?: string }, ...args: readonly string[]) {
  const pretend = `
    Object.defineProperty(process, 'version', { value: 'v${versions.node}' });
    Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${versions.node}' } });
    Object.defineProperty(process, 'platform', { value: '${versions.platform ?? process.platform}' });`;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`, ...args],
    { cwd: root, encoding: 'utf8' },
  );
  return { status, stdout, stderr };
}

function nodeFoundBy(node: string, platform?: string): string {
  const { href } = pathToFileURL(join(root, 'bin', 'find-node.mjs'));
  const script = `import { findNode } from '${href}'; console.log(findNode())`;
  return runAs(
    platform === undefined ? { node } : { node, platform },
    '--input-type=module',
    '-e',
    script,
  ).stdout.trim();
}

describe('the version of Node', () => {
  it('that npm may run under is 20, so that it prints no EBADENGINE', () => {
    const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { engines: { node: string } };
    assert.ok(semver.satisfies(OLDEST, engines.node), engines.node);
  });

  it('that runs the sources is 24.15 or newer', () => {
    const elsewhere = 'no-such-platform';
    assert.equal(nodeFoundBy('24.15.0', elsewhere), process.execPath);
    assert.equal(nodeFoundBy('26.0.0', elsewhere), process.execPath);
    for (const version of [OLDEST, '24.14.9']) {
      assert.equal(nodeFoundBy(version, elsewhere), 'undefined');
    }
  });

  it('is that of the installed copy where the running one is older', () => {
    const copy = join(root, 'node_modules', `node-${process.platform}-${process.arch}`, 'bin', 'node');
    assert.equal(nodeFoundBy(OLDEST), existsSync(copy) ? copy : 'undefined');
  });

  it('is not blamed in a checkout without its dependencies', () => {
    const folder = mkdtempSync(join(tmpdir(), 'portcullis-clone-'));
    try {
      for (const part of ['bin', 'tools', 'src']) {
        symlinkSync(join(root, part), join(folder, part));
      }
      const command = join(folder, 'bin', 'portcullis.mjs');
      const flags = ['--preserve-symlinks', '--preserve-symlinks-main'];
      for (const node of [OLDEST, process.versions.node]) {
        const { status, stderr } = runAs({ node }, ...flags, command);
        assert.match(stderr, /^error: the dependencies of this checkout are not installed\. Run `npm start` or /);
        assert.equal(status, 2);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('gets the flags of the image from npm start', () => {
    const script = 'data:text/javascript,process.stdout.write(process.execArgv.join())';
    const { stdout } = spawnSync(process.execPath, ['tools/run.mjs', 'bin/portcullis.mjs', '--version'], {
      cwd: root,
      encoding: 'utf8',
      env: { ...process.env, NODE_OPTIONS: `--import "${script}"` },
    });
    // First the script that installs, then the product.
    assert.match(stdout, new RegExp(`^${NODE_FLAGS.join()}`, 'm'));
  });

  it('is required where there is no copy for the platform', () => {
    const { status, stderr } = runAs({ node: OLDEST, platform: 'no-such-platform' }, 'bin/portcullis.mjs', '--version');
    assert.equal(status, 2);
    assert.match(stderr, /^error: Portcullis needs Node 24\.15 or newer, this is v20\.19\.0\./);
  });
});
