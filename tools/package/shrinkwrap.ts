// Writes npm-shrinkwrap.json, the lock file of a published package (https://docs.npmjs.com/cli/configuring-npm/npm-shrinkwrap-json),
// from package-lock.json without what only developers need. `npm pack` runs it, and removes the file.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../generated-files.ts';

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean }>>;
}

const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock;
const published = Object.entries(lock.packages).filter(([, { dev = false }]) => !dev);
const content = { ...lock, packages: Object.fromEntries(published) };
writeFileSync(join(root, 'npm-shrinkwrap.json'), `${JSON.stringify(content, undefined, 2)}\n`);
