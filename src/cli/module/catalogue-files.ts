import { readdirSync, statSync } from 'node:fs';
import { extname, join } from 'node:path';
import { readText } from '../document.ts';
import { requireBelow } from '../files-below.ts';
import { CliError } from '../errors.ts';

const EXTENSIONS: ReadonlySet<string> = new Set(['.yaml', '.yml']);

export interface CatalogueFile {
  readonly text: string;
  readonly place: string;
}

/** Whether a path is that of a catalogue: a folder, or a YAML file. */
export function isCataloguePath(path: string): boolean {
  return EXTENSIONS.has(extname(path)) || isFolder(path);
}

/** A file, `-` for standard input, or the YAML files of a folder in the order of their names. @throws CliError */
export async function readCatalogueFiles(path: string): Promise<readonly CatalogueFile[]> {
  const paths = path !== '-' && isFolder(path) ? await yamlFiles(path) : [path];
  if (paths.length === 0) {
    throw new CliError(`${path} has no catalogue: expected YAML files (.yaml, .yml)`);
  }
  return await Promise.all(paths.map(async (file) => ({ text: await readText(file), place: file })));
}

async function yamlFiles(folder: string): Promise<readonly string[]> {
  const paths = readdirSync(folder)
    .filter((name) => EXTENSIONS.has(extname(name)))
    .toSorted()
    .map((name) => join(folder, name));
  await requireBelow(paths, folder);
  return paths;
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
