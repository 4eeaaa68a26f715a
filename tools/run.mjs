// Runs a script of the project on Node 20 or newer: installs the locked dependencies when they are missing or stale, then
// starts the script with the Node 24 among them. Usage: run.mjs SCRIPT [ARG...]  |  run.mjs --bin NAME [ARG...]
import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findNode, NODE_FLAGS } from '../bin/find-node.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const lockFile = join(root, 'package-lock.json');
/** Interval at which the end of npm is noticed. Milliseconds. */
const PARENT_CHECK_MS = 250;
const installedLock = join(root, 'node_modules', '.portcullis-lock.json');

/** Installs the dependencies of package-lock.json, unless the last installation had the same lock file. */
function installDependencies() {
  if (existsSync(installedLock) && readFileSync(installedLock, 'utf8') === readFileSync(lockFile, 'utf8')) {
    return;
  }
  process.stderr.write('Installing the locked dependencies (npm ci), once…\n');
  const npm = spawnSync(
    'npm',
    ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'],
    {
      cwd: root,
      stdio: ['ignore', 'ignore', 'pipe'],
      shell: process.platform === 'win32',
      encoding: 'utf8',
    },
  );
  if (npm.status !== 0) {
    process.stderr.write(
      `${npm.error?.message ?? npm.stderr}\nerror: "npm ci" failed in ${root}; see the message above, then try again.\n`,
    );
    process.exit(1);
  }
  copyFileSync(lockFile, installedLock);
}

installDependencies();
const node = findNode();
if (node === undefined) {
  process.stderr.write(
    `error: Node 24.15 or newer is needed, this is ${process.version}, and no copy of it is published for ${process.platform}-${process.arch}. Install it and run the command again.\n`,
  );
  process.exit(1);
}

const [first, ...rest] = process.argv.slice(2);
const command = first === '--bin' ? join(root, 'node_modules', '.bin', rest.shift()) : join(root, first);
const child = spawn(node, [...(first === 'bin/portcullis.mjs' ? NODE_FLAGS : []), command, ...rest], {
  cwd:
    process.env.INIT_CWD && first === 'bin/portcullis.mjs' && process.env.npm_lifecycle_event === 'portcullis'
      ? process.env.INIT_CWD
      : root,
  stdio: 'inherit',
  env: { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ''}` },
});
// A terminal sends signals to the whole process group, a supervisor only to this process: forward them, and end with the child.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => child.kill(signal));
}
// npm sends its own SIGTERM to its shell only, which ends and leaves this process to init.
if (process.env.npm_lifecycle_event !== undefined) {
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid !== parent) {
      clearInterval(watch);
      child.kill('SIGTERM');
    }
  }, PARENT_CHECK_MS);
}
child.on('exit', (code, signal) => process.exit(signal === null ? code : 128 + constants.signals[signal]));
