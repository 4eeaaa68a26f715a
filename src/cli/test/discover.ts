// Finds test files.
import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { CliError, EXIT, fileProblem } from '../errors.ts';

/** `portcullis-test.yml`, or a name that ends so. */
const TEST_FILE = /^(?:(.+)\.)?portcullis-test\.ya?ml$/;
/** What test files are called, for messages. */
export const TEST_FILES = 'portcullis-test.yml or NAME.portcullis-test.yml';

/**
 * The test files that paths name: files as they are, and what folders hold, in a fixed order, each once.
 * Folders called node_modules, hidden ones and links to folders are left out.
 * @throws CliError when a path is not there, or none of them leads to a test file
 */
export async function discover(paths: readonly string[]): Promise<readonly string[]> {
  const found = await Promise.all(paths.map(testFilesOf));
  const files = [...new Set(found.flat())];
  if (files.length === 0) {
    throw new CliError(`no tests in ${paths.join(', ')}: expected files called ${TEST_FILES}`, {
      exitCode: EXIT.usage,
      hint: 'Folders are searched with all below them, but for node_modules and hidden ones. A file of another name is named itself.',
    });
  }
  return files;
}

/** What a suite is called that does not say: as its file, or as the folder that it is in. */
export function suiteName(file: string): string {
  const name = basename(file);
  const match = TEST_FILE.exec(name);
  return match === null ? name.replace(/\.ya?ml$/, '') : (match[1] ?? basename(dirname(resolve(file))));
}

async function testFilesOf(path: string): Promise<string[]> {
  try {
    return (await stat(path)).isDirectory() ? await testFilesIn(path) : [path];
  } catch (error) {
    throw new CliError(`${path} cannot be read: ${fileProblem(error)}`, { exitCode: EXIT.usage, cause: error });
  }
}

async function testFilesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const found = await Promise.all(
    entries
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map(async (entry) => {
        const path = join(folder, entry.name);
        if (entry.isDirectory()) {
          return entry.name === 'node_modules' || entry.name.startsWith('.') ? [] : await testFilesIn(path);
        }
        return TEST_FILE.test(entry.name) ? [path] : [];
      }),
  );
  return found.flat();
}
