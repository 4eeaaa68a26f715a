import { readdir, realpath, stat } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { CliError } from './errors.ts';

/**
 * The files in a folder and below it with wanted names, sorted. Skips node_modules, hidden folders and links to folders.
 * @throws CliError for a link to a file that is not below the folder, and the error of the file system
 */
export async function filesBelow(folder: string, isWanted: (name: string) => boolean): Promise<readonly string[]> {
  const files = await filesIn(folder, isWanted);
  await requireBelow(
    files.flatMap(({ path, isLink }) => (isLink ? [path] : [])),
    folder,
  );
  return files.map(({ path }) => path);
}

/**
 * A folder's author, such as that of a pull request, may not be who runs the command: a link must not lead to files of the latter.
 * @throws CliError for the first link that leads out of the folder
 */
export async function requireBelow(links: readonly string[], folder: string): Promise<void> {
  const root = links.length === 0 ? folder : await realpath(folder);
  for (const link of links) {
    const target = relative(root, await realpath(link).catch(() => root));
    if (target === '..' || target.startsWith(`..${sep}`)) {
      throw new CliError(`${link} is a symbolic link out of ${folder}: it is not read`, {
        hint: 'Name the file that it leads to, or replace the link by a copy.',
      });
    }
  }
}

interface FoundFile {
  readonly path: string;
  readonly isLink: boolean;
}

async function filesIn(folder: string, isWanted: (name: string) => boolean): Promise<readonly FoundFile[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const found = await Promise.all(
    entries
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map(async (entry) => {
        const path = join(folder, entry.name);
        if (entry.isDirectory()) {
          return entry.name === 'node_modules' || entry.name.startsWith('.') ? [] : await filesIn(path, isWanted);
        }
        return isWanted(entry.name) ? [{ path, isLink: entry.isSymbolicLink() }] : [];
      }),
  );
  return found.flat();
}

export async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() ?? false;
}
