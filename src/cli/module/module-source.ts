// Module code for commands: from a file as it is, from a server by way of the user's cache.
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  DEFAULT_MAX_MODULE_BYTES,
  digestOf,
  isBuiltin,
  type FileReference,
  ModuleError,
  type ModuleReference,
  ModuleStore,
  parseReference,
  parseSources,
  readModuleFile,
  type SourcesConfig,
} from '../../modules/index.ts';
import { cacheFolder } from '../cache-folder.ts';
import { readText } from '../document.ts';
import { usageError } from '../errors.ts';
import { sizeText } from '../output.ts';
import type { Progress } from '../progress.ts';

/** A module as a command has it. */
export interface ModuleSource {
  /** The reference that names it, as it may be shown. */
  readonly location: string;
  /** `sha256:…` of the bytes. */
  readonly digest: string;
  readonly bytes: Uint8Array;
}

/** How to get modules. */
export interface ModuleSourceOptions {
  readonly progress: Progress;
  /** Absolute folder that relative `file://./…` references start from. */
  readonly baseDir: string;
  readonly sources?: SourcesConfig;
}

/**
 * The reference that a target means: a URL, or the path of a file, which starts from `baseDir`; either may end in
 * `@sha256:…`.
 * @throws CliError, ModuleError
 */
export function targetReference(target: string, baseDir: string = process.cwd()): ModuleReference {
  if (isBuiltin(target)) {
    throw usageError(`${target} is part of this product and has no file`, 'Name a WebAssembly file, or a URL.');
  }
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(target)) {
    return parseReference(target, { baseDir });
  }
  const [, path = target, digest = ''] = /^(.*?)(@sha256:[^/@]*)?$/s.exec(target) ?? [];
  return parseReference(`${pathToFileURL(resolve(baseDir, path)).href}${digest}`);
}

/**
 * Gets a module.
 * @throws ModuleError
 */
export async function readModule(reference: ModuleReference, options: ModuleSourceOptions): Promise<ModuleSource> {
  return reference.kind === 'file' ? await readFileModule(reference) : await download(reference, options);
}

/** The sources that `--sources-path` names. @throws CliError, ModuleError */
export async function readSources(path: string | undefined): Promise<SourcesConfig | undefined> {
  return path === undefined ? undefined : parseSources(await readText(path), path);
}

/** A file is there already: it is not copied to the cache. */
async function readFileModule(reference: FileReference): Promise<ModuleSource> {
  const bytes = await readModuleFile(reference, DEFAULT_MAX_MODULE_BYTES);
  const digest = digestOf(bytes);
  if (reference.digest !== undefined && reference.digest !== digest) {
    throw new ModuleError(
      'digest-mismatch',
      `${reference.path} is not the pinned module: expected ${reference.digest}, got ${digest}`,
    );
  }
  return { location: reference.shown, digest, bytes };
}

async function download(reference: ModuleReference, options: ModuleSourceOptions): Promise<ModuleSource> {
  const { progress, baseDir, sources } = options;
  const store = new ModuleStore({
    cacheDir: join(cacheFolder(), 'modules'),
    ...(sources === undefined ? {} : { sources }),
  });
  const label = `downloading ${reference.shown}`;
  const fetched = await progress.during(label, (update) =>
    store.fetch(reference, {
      baseDir,
      onProgress: (received, total) =>
        update(`${label}: ${sizeText(received)}${total === undefined ? '' : ` of ${sizeText(total)}`}`),
    }),
  );
  if (fetched.sourceError !== undefined) {
    progress.line(`note: the copy of ${fetched.url} in the cache is used: ${fetched.sourceError.message}`);
  }
  return { location: fetched.url, digest: fetched.digest, bytes: fetched.bytes };
}
