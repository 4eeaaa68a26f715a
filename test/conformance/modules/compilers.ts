// The compilers of the guests. None is needed to use the product, so each may be missing.
import { execFile } from 'node:child_process';
import { cpSync, existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { builtFile, folderDigest } from './built-files.ts';
import { ROOT } from '../../cli/command.ts';

const run = promisify(execFile);
const GUESTS = join(import.meta.dirname, 'guests');
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

/** A module as a compiler writes it, or why there is none. */
export type Compiled = { readonly file: string } | { readonly missing: string };

/** Builds one guest. */
export type Compiler = (folder: string) => Promise<Compiled>;

/** The folder with a guest's manifest, metadata and cases. */
export function guestFolder(folder: string): string {
  return folder.startsWith('examples/') ? join(ROOT, folder) : join(GUESTS, folder);
}

/** The first line that a program prints about its version; undefined when it is not installed. */
async function versionOf(program: string, ...args: readonly string[]): Promise<string | undefined> {
  try {
    const { stdout } = await run(program, args);
    return stdout.split('\n')[0];
  } catch {
    return undefined;
  }
}

/** A module that is committed with its source, see `npm run examples:build`. */
export const committed: Compiler = (folder) => Promise.resolve({ file: join(guestFolder(folder), 'policy.wasm') });

const GO_ENVIRONMENT = { GOTOOLCHAIN: 'local', GOFLAGS: '', CGO_ENABLED: '0' };

/**
 * Go, with the flags of published policies: without checks of bounds, symbols and paths. The module is the folder of the guest's
 * folder; others use the packages of `go`.
 */
export const go: Compiler = async (folder) => {
  const version = await versionOf('go', 'version');
  if (version === undefined) {
    return { missing: 'Go is not installed' };
  }
  const module = dirname(folder);
  const modules = [...new Set(['go', module])];
  const digests = modules.map((name) => folderDigest(guestFolder(name)));
  const file = await builtFile(['go', version, folder, ...digests], async (output, scratch) => {
    for (const name of modules) {
      cpSync(guestFolder(name), join(scratch, name), { recursive: true });
    }
    const cwd = join(scratch, module);
    const options = { cwd, maxBuffer: MAX_OUTPUT_BYTES, env: { ...process.env, ...GO_ENVIRONMENT } };
    await run('go', ['mod', 'vendor'], options);
    // What a policy does not need of Kubernetes' packages is left out, as published policies do.
    if (existsSync(join(cwd, 'trimmed'))) {
      cpSync(join(cwd, 'trimmed'), join(cwd, 'vendor'), { recursive: true });
    }
    const flags = ['-trimpath', '-buildvcs=false', '-mod=vendor', '-gcflags=all=-B', '-ldflags=-s -w -buildid='];
    await run('go', ['build', ...flags, '-o', output, `./${basename(folder)}`], {
      ...options,
      env: { ...options.env, GOOS: 'wasip1', GOARCH: 'wasm' },
    });
  });
  return { file };
};

const CLANG = 'clang-14';

/** Clang with a C library for WASI. */
export const c: Compiler = async (folder) => {
  const version = await versionOf(CLANG, '--version');
  if (version === undefined) {
    return { missing: `${CLANG} is not installed (Debian: clang-14 lld-14 wasi-libc libclang-rt-14-dev-wasm32)` };
  }
  const sources = guestFolder(folder);
  const file = await builtFile(['c', version, folderDigest(sources)], async (output) => {
    await run(CLANG, ['--target=wasm32-wasi', '-O2', '-s', '-o', output, join(sources, 'policy.c')]);
  });
  return { file };
};
