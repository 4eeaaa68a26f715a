import { mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileProblem } from '../../files/index.ts';
import { CliError } from '../errors.ts';

/**
 * Writes files into a folder, which is created if it is missing. Returns their paths.
 * @param files texts by name
 * @param isForced whether existing files are replaced
 * @throws CliError when a file exists; nothing is written then
 */
export async function writeFiles(
  folder: string,
  files: ReadonlyMap<string, string>,
  isForced: boolean,
): Promise<readonly string[]> {
  const paths = [...files].map(([name, text]) => ({ path: join(folder, name), text }));
  if (!isForced) {
    await requireNone(paths.map(({ path }) => path));
  }
  try {
    await mkdir(folder, { recursive: true });
    for (const { path, text } of paths) {
      // `wx` fails for a file that was created in the meantime.
      await writeFile(path, text, { flag: isForced ? 'w' : 'wx' });
    }
  } catch (error) {
    throw new CliError(`${folder} cannot be written: ${fileProblem(error)}`, { cause: error });
  }
  return paths.map(({ path }) => path);
}

async function requireNone(paths: readonly string[]): Promise<void> {
  const found = await Promise.all(paths.map(async (path) => ({ path, isThere: await exists(path) })));
  const existing = found.filter(({ isThere }) => isThere).map(({ path }) => path);
  if (existing.length > 0) {
    throw new CliError(`${existing.join(', ')} exist${existing.length === 1 ? 's' : ''} already: nothing was written`, {
      hint: 'Choose another folder with -o FOLDER, or replace the files with --force.',
    });
  }
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}
