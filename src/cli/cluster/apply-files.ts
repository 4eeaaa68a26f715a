import { type Dirent, readdirSync, statSync } from 'node:fs';
import { extname, join } from 'node:path';
import { isJsonObject, type KubernetesObject } from '../../resources/index.ts';
import { fileProblem } from '../../files/index.ts';
import { CliError, usageError } from '../errors.ts';
import { requireBelow } from '../files-below.ts';
import { documentName, readText } from '../document.ts';
import { placedManifestsOf } from '../policy/manifests.ts';
import type { PlacedManifest } from '../policy/placed-manifests.ts';

/** Of files with manifests. */
export const EXTENSIONS: ReadonlySet<string> = new Set(['.yaml', '.yml', '.json']);

/** Files that are read at once: one after the other, 10,000 take three times as long. */
const MAX_OPEN_FILES = 16;

/** A file and its objects. */
export interface ManifestFile {
  /** `-` for standard input. */
  readonly path: string;
  readonly objects: readonly KubernetesObject[];
  /** The manifests of the objects, in their order. */
  readonly placed: readonly PlacedManifest[];
}

/** An object, and where it stands. */
export interface PlacedObject {
  readonly object: KubernetesObject;
  readonly placed: PlacedManifest;
}

/**
 * The objects of `-f`: of files, standard input, and the YAML and JSON files of folders in the order of their names.
 * @throws CliError when there are none
 */
export async function readObjects(paths: readonly string[], recursive: boolean): Promise<readonly KubernetesObject[]> {
  return (await readPlacedObjects(paths, recursive)).map(({ object }) => object);
}

/** As {@link readObjects}, with their places. */
export async function readPlacedObjects(
  paths: readonly string[],
  recursive: boolean,
): Promise<readonly PlacedObject[]> {
  const objects = (await readManifestFiles(paths, recursive)).flatMap((file) =>
    file.placed.flatMap((placed, index) => {
      const object = file.objects[index];
      return object === undefined ? [] : [{ object, placed }];
    }),
  );
  if (objects.length === 0) {
    throw new CliError(`${paths.map((path) => (path === '-' ? 'standard input' : path)).join(', ')}: no manifests`, {
      hint: 'Expected YAML or JSON with at least one Kubernetes object. -R includes subfolders.',
    });
  }
  return objects;
}

/** As {@link readObjects}, by file. */
export async function readManifestFiles(
  paths: readonly string[],
  recursive: boolean,
): Promise<readonly ManifestFile[]> {
  if (paths.length === 0) {
    throw usageError(
      'expected at least one file with manifests',
      'Name files, folders, or - for standard input, with -f.',
    );
  }
  const read: ManifestFile[] = [];
  const files = (await Promise.all(paths.map((name) => filesOf(name, recursive)))).flat();
  for (let start = 0; start < files.length; start += MAX_OPEN_FILES) {
    read.push(...(await Promise.all(files.slice(start, start + MAX_OPEN_FILES).map(readManifestFile))));
  }
  return read;
}

async function readManifestFile(path: string): Promise<ManifestFile> {
  const placed = placedManifestsOf(await readText(path), documentName(path));
  return { path, objects: placed.map(({ object }) => checked(object, path)), placed };
}

async function filesOf(path: string, recursive: boolean): Promise<readonly string[]> {
  if (path === '-' || !isFolder(path)) {
    return [path];
  }
  const entries = entriesOf(path, recursive);
  await requireBelow(
    entries.flatMap((entry) => (entry.isSymbolicLink() ? [join(entry.parentPath, entry.name)] : [])),
    path,
  );
  return entries.map((entry) => join(entry.parentPath, entry.name));
}

function entriesOf(folder: string, recursive: boolean): Dirent[] {
  return readdirSync(folder, { withFileTypes: true })
    .toSorted((one, other) => (one.name < other.name ? -1 : 1))
    .flatMap((entry) => {
      if (entry.isDirectory()) {
        return recursive ? entriesOf(join(folder, entry.name), true) : [];
      }
      return EXTENSIONS.has(extname(entry.name)) ? [entry] : [];
    });
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch (error) {
    const hint = 'Check the path; "-" stands for standard input.';
    throw new CliError(`${path} cannot be read: ${fileProblem(error)}`, { cause: error, hint });
  }
}

function checked(manifest: object, path: string): KubernetesObject {
  const { apiVersion, kind, metadata } = manifest as { apiVersion?: unknown; kind?: unknown; metadata?: unknown };
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') {
    throw new CliError(
      `${path}: a manifest lacks ${typeof kind === 'string' ? 'apiVersion' : 'kind'}: expected a Kubernetes object`,
    );
  }
  const name = isJsonObject(metadata) ? metadata['name'] : undefined;
  if (typeof name !== 'string' || name === '') {
    throw new CliError(`${path}: a manifest of kind ${kind} has no metadata.name`);
  }
  return manifest as KubernetesObject;
}
