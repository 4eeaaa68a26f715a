#!/usr/bin/env node
// The command. Plain JavaScript, so that an old Node gets a sentence instead of a syntax error.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';
import { findNode, NODE_FLAGS } from './find-node.mjs';

const node = findNode();
const isUninstalledCheckout =
  existsSync(new URL('../tools/run.mjs', import.meta.url)) && !existsSync(new URL('../node_modules', import.meta.url));
if (isUninstalledCheckout) {
  process.stderr.write(
    'error: the dependencies of this checkout are not installed. Run `npm start` or `npm run portcullis` in it once: both install them.\n',
  );
  process.exit(2);
} else if (node === undefined) {
  process.stderr.write(
    `error: Portcullis needs Node 24.15 or newer, this is ${process.version}. Install a newer Node and run the command again.\n`,
  );
  process.exit(2);
} else if (node === process.execPath) {
  // In a checkout the TypeScript sources run as they are; a published package has only the built ones.
  const source = new URL('../src/cli/program/main.ts', import.meta.url);
  await import(existsSync(source) ? source.href : new URL('../dist/cli/program/main.js', import.meta.url).href);
} else {
  const child = spawn(node, [...NODE_FLAGS, fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: 'inherit',
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => child.kill(signal));
  }
  child.on('exit', (code, signal) => process.exit(signal === null ? code : 128 + constants.signals[signal]));
}
