// Replaces the files of a folder atomically, like a kubelet for mounted Secrets: file names are symbolic links through one
// link, `..data`, to the folder of a generation. Replacing that link replaces all files.
import { randomBytes } from 'node:crypto';
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

const DATA = '..data';
/** Name prefix of folders of generations. No key of a Secret begins with it. */
const GENERATION = '..generation-';

/** Access for the user of the process only, since private keys are among the files. */
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;

/**
 * Replaces all files of a folder at once. The previous generation stays for processes that are reading it; older ones are
 * removed.
 *
 * Synchronous, so that code of this process that reads the files one after the other, within one turn of the event loop, gets
 * one generation. The files are few and small.
 * @param folder created if necessary; must contain nothing else
 */
export function replaceFiles(folder: string, files: ReadonlyMap<string, Uint8Array | string>): void {
  mkdirSync(folder, { recursive: true, mode: FOLDER_MODE });
  const before = currentGeneration(folder);
  const generation = `${GENERATION}${randomBytes(8).toString('hex')}`;
  mkdirSync(join(folder, generation), { mode: FOLDER_MODE });
  for (const [name, content] of files) {
    writeFileSync(join(folder, generation, name), content, { mode: FILE_MODE });
  }
  replaceLink(folder, DATA, generation);
  for (const name of files.keys()) {
    if (linkOf(folder, name) !== join(DATA, name)) {
      replaceLink(folder, name, join(DATA, name));
    }
  }
  for (const name of readdirSync(folder)) {
    const isOldGeneration = name.startsWith(GENERATION) && name !== generation && name !== before;
    const isOldFile = !name.startsWith('..') && !files.has(name);
    if (isOldGeneration || isOldFile) {
      rmSync(join(folder, name), { recursive: true, force: true });
    }
  }
}

/** The name of the current generation's folder. */
function currentGeneration(folder: string): string | undefined {
  return linkOf(folder, DATA);
}

function linkOf(folder: string, name: string): string | undefined {
  const path = join(folder, name);
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true ? readlinkSync(path) : undefined;
}

/** Replaces a link, or a file of that name, by a rename. */
function replaceLink(folder: string, name: string, target: string): void {
  const temporary = join(folder, `..new-${randomBytes(8).toString('hex')}`);
  symlinkSync(target, temporary);
  renameSync(temporary, join(folder, name));
}
