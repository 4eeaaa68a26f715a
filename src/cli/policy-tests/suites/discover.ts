import { stat } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import { fileProblem } from '../../../files/index.ts';
import { CliError, EXIT } from '../../errors.ts';
import { filesBelow } from '../../files-below.ts';
import { TEST_FILE } from '../../policy/manifests.ts';

/** The names of test files, for messages. */
export const TEST_FILES = 'portcullis-test.yml or NAME.portcullis-test.yml';

/**
 * The test files of paths, in a fixed order, each once: files, and the test files in folders. Skips node_modules, hidden
 * folders and links to folders.
 * @throws CliError when a path does not exist, or there is no test file
 */
export async function discover(paths: readonly string[]): Promise<readonly string[]> {
  const found = await Promise.all(paths.map(testFilesOf));
  const files = [...new Set(found.flat())];
  if (files.length === 0) {
    throw new CliError(`no tests in ${paths.join(', ')}: expected files named ${TEST_FILES}`, {
      exitCode: EXIT.usage,
      hint: 'Folders are searched with all below them, but for node_modules and hidden ones. A file of another name is named itself.',
    });
  }
  return files;
}

/** The default name of a suite: that of its file, or of its folder. */
export function suiteName(file: string): string {
  const name = basename(file);
  const match = TEST_FILE.exec(name);
  return match === null ? name.replace(/\.ya?ml$/, '') : (match[1] ?? basename(dirname(resolve(file))));
}

async function testFilesOf(path: string): Promise<readonly string[]> {
  try {
    return (await stat(path)).isDirectory() ? await filesBelow(path, (name) => TEST_FILE.test(name)) : [path];
  } catch (error) {
    if (error instanceof CliError) {
      throw error;
    }
    throw new CliError(`${path} cannot be read: ${fileProblem(error)}`, {
      exitCode: EXIT.usage,
      hint: `Name a file with tests, or a folder that has files named ${TEST_FILES}.`,
      cause: error,
    });
  }
}
