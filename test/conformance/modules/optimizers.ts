// The optimizers that authors run on a module before they publish it.
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cacheFolder } from '../../../src/cli/cache-folder.ts';
import { builtFile } from './built-files.ts';

const run = promisify(execFile);

/** What an author does with a compiled module. */
export interface Optimizer {
  /** As in the table: flags and version of Binaryen. */
  readonly name: string;
  /** Version of Binaryen; undefined: nothing is done. */
  readonly binaryen?: string;
  readonly flags: readonly string[];
}

/**
 * Features that compilers use without being asked. Binaryen 108 encodes newer ones in a way that was never published, which V8
 * refuses.
 */
const COMMON_FEATURES = [
  'bulk-memory',
  'mutable-globals',
  'nontrapping-float-to-int',
  'reference-types',
  'sign-ext',
].map((feature) => `--enable-${feature}`);

/**
 * Versions of Binaryen with the features that their users give: the oldest that distributions have, the one that the pipelines of
 * published policies pin, and the newest of the registry, which also knows a proposal that V8 does not have.
 */
const VERSIONS: Readonly<Record<string, readonly string[]>> = {
  '108.0.0': COMMON_FEATURES,
  '116.0.0': ['--all-features'],
  '132.0.0': ['--all-features', '--disable-compact-imports'],
};

/** All of them, in the order of the table. */
export const OPTIMIZERS: readonly Optimizer[] = [
  { name: 'raw', flags: [] },
  ...Object.entries(VERSIONS).flatMap(([binaryen, features]) =>
    ['O2', 'Oz'].map((level) => ({
      name: `${level}-${binaryen.split('.')[0] ?? ''}`,
      binaryen,
      flags: [...features, `-${level}`],
    })),
  ),
];

/** The path of the optimized module. */
export async function optimized(module: string, digest: string, { binaryen, flags }: Optimizer): Promise<string> {
  if (binaryen === undefined) {
    return module;
  }
  return await builtFile(['wasm-opt', binaryen, ...flags, digest], async (output) => {
    const program = join(await binaryenFolder(binaryen), 'bin', 'wasm-opt');
    await run(process.execPath, [program, ...flags, module, '-o', output]);
  });
}

/** The folder of a version of Binaryen, which is installed once. */
async function binaryenFolder(version: string): Promise<string> {
  const prefix = join(cacheFolder(), `binaryen-${version}`);
  const folder = join(prefix, 'node_modules', 'binaryen');
  if (!existsSync(folder)) {
    mkdirSync(prefix, { recursive: true });
    const options = ['--prefix', prefix, '--ignore-scripts', '--no-audit', '--no-fund', '--no-save'];
    await run('npm', ['install', ...options, `binaryen@${version}`]);
  }
  return folder;
}
