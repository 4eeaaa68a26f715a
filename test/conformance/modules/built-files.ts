// Files that take long to build, kept in the user's cache by what they are built from.
import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cacheFolder } from '../../../src/cli/cache-folder.ts';

const FOLDER = join(cacheFolder(), 'module-corpus');

/** The path of a file that `build` writes, unless an earlier run built it from the same inputs. */
export async function builtFile(
  inputs: readonly string[],
  build: (output: string, scratch: string) => Promise<void> | void,
): Promise<string> {
  const file = join(FOLDER, `${digestOf(inputs)}.wasm`);
  if (!existsSync(file)) {
    mkdirSync(FOLDER, { recursive: true });
    const scratch = mkdtempSync(join(tmpdir(), 'module-corpus-'));
    try {
      const output = `${file}.${process.pid}`;
      await build(output, scratch);
      renameSync(output, file);
    } finally {
      rmSync(scratch, { recursive: true, force: true });
    }
  }
  return file;
}

/** One digest over the names and contents of the files of a folder. */
export function folderDigest(folder: string): string {
  const files = globSync('**', { cwd: folder })
    .filter((file) => statSync(join(folder, file)).isFile())
    .toSorted();
  return digestOf(files.flatMap((file) => [file, readFileSync(join(folder, file), 'base64')]));
}

function digestOf(texts: readonly string[]): string {
  return createHash('sha256').update(texts.join('\0')).digest('hex');
}
