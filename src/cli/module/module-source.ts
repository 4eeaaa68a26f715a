// Modules for commands: read from a file, or downloaded through the cache of the user.
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  digestOf,
  isBuiltin,
  type FileReference,
  ModuleError,
  type ModuleReference,
  ModuleStore,
  parseBuiltin,
  parseReference,
  readModuleFile,
  type Verification,
} from '../../modules/index.ts';
import { LARGEST_MODULE_BYTES, type SourcesConfig } from '../../modules/sources/index.ts';
import { usageError } from '../errors.ts';
import type { Progress } from '../progress.ts';
import { transferLabel } from '../transfer-label.ts';
import { moduleCacheFolder } from './module-cache.ts';

export interface ModuleSource {
  /** Its reference without credentials. */
  readonly location: string;
  /** The digest of the bytes. */
  readonly digest: string;
  readonly bytes: Uint8Array;
  /** Of a module from a registry: the digest of its manifest. */
  readonly manifest?: string;
}

export interface ModuleSourceOptions {
  readonly progress: Progress;
  /** Absolute folder for relative references such as `file://./x.wasm`. */
  readonly baseDir: string;
  readonly sources?: SourcesConfig;
  /** What modules must be signed by; then all of them must come from registries. Default: signatures are not verified. */
  readonly verification?: Verification | undefined;
  /** Whether an error of the source counts although the module is in the cache. Default: no. */
  readonly isFromSource?: boolean;
}

/**
 * The reference of a target: a URL, or the path of a file relative to `baseDir`; both may end in `@sha256:…`.
 * @throws CliError, ModuleError
 */
export function targetReference(target: string, baseDir: string = process.cwd()): ModuleReference {
  if (isBuiltin(target)) {
    throw usageError(
      `builtin:${parseBuiltin(target)} is part of this product and has no file`,
      'Name a WebAssembly file, or a URL.',
    );
  }
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(target)) {
    return parseReference(target, { baseDir });
  }
  const [, path = target, digest = ''] = /^(.*?)(@sha256:[^/@]*)?$/s.exec(target) ?? [];
  return parseReference(`${pathToFileURL(resolve(baseDir, path)).href}${digest}`);
}

/**
 * Reads or downloads a module.
 * @throws ModuleError
 */
export async function readModule(reference: ModuleReference, options: ModuleSourceOptions): Promise<ModuleSource> {
  const isPlainFile = reference.kind === 'file' && options.verification === undefined;
  return isPlainFile ? await readFileModule(reference) : await download(reference, options);
}

/** Reads a file directly: the cache needs no copy. */
async function readFileModule(reference: FileReference): Promise<ModuleSource> {
  const bytes = await readModuleFile(reference, LARGEST_MODULE_BYTES);
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
  const { progress, baseDir, sources, verification, isFromSource = false } = options;
  const store = new ModuleStore({
    cacheDir: moduleCacheFolder(),
    maxModuleBytes: LARGEST_MODULE_BYTES,
    ...(sources === undefined ? {} : { sources }),
    ...(verification === undefined ? {} : { verification }),
  });
  const label = `downloading ${reference.shown}`;
  const fetched = await progress.during(label, (update) =>
    store.fetch(reference, {
      baseDir,
      onProgress: (received, total) => update(transferLabel(label, received, total)),
    }),
  );
  if (fetched.sourceError !== undefined) {
    if (isFromSource) {
      throw fetched.sourceError;
    }
    progress.line(`note: using the cached copy of ${fetched.url}: ${fetched.sourceError.message}`);
  }
  const { url, digest, bytes, manifest } = fetched;
  return { location: url, digest, bytes, ...(manifest === undefined ? {} : { manifest }) };
}
