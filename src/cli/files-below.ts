import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * The files in a folder and below it with wanted names, sorted. Skips node_modules, hidden folders and links to folders.
 * @throws the error of the file system
 */
export async function filesBelow(folder: string, isWanted: (name: string) => boolean): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const found = await Promise.all(
    entries
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map(async (entry) => {
        const path = join(folder, entry.name);
        if (entry.isDirectory()) {
          return entry.name === 'node_modules' || entry.name.startsWith('.') ? [] : await filesBelow(path, isWanted);
        }
        return isWanted(entry.name) ? [path] : [];
      }),
  );
  return found.flat();
}

export async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() ?? false;
}
