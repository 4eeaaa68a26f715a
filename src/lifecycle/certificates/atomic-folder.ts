// Files that are replaced all at once, as a kubelet does it for Secrets in volumes: the names that readers use are links
// through one link, `..data`, to the folder of a generation; that link is replaced.
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
/** What the folders of generations begin with: names that no key of a Secret has. */
const GENERATION = '..generation-';

/** For the user that the process runs as only: there are keys among them. */
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;

/**
 * Makes the files of a folder these, all at once: who reads one after the other within one turn of the event loop gets them of
 * one generation. The generation before stays, for readers that are in the middle of it; older ones go.
 *
 * Synchronous, so that nothing of this process reads in between; it is a few small files, seldom.
 * @param folder made when it is missing; nothing else should be in it
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

/** The name of the folder that is read now. */
function currentGeneration(folder: string): string | undefined {
  return linkOf(folder, DATA);
}

function linkOf(folder: string, name: string): string | undefined {
  const path = join(folder, name);
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true ? readlinkSync(path) : undefined;
}

/** Also where there is a file of that name: a rename replaces it. */
function replaceLink(folder: string, name: string, target: string): void {
  const temporary = join(folder, `..new-${randomBytes(8).toString('hex')}`);
  symlinkSync(target, temporary);
  renameSync(temporary, join(folder, name));
}
