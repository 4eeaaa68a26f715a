import { randomUUID } from 'node:crypto';
import { rename, rm, writeFile } from 'node:fs/promises';
import { fileProblem } from '../files/index.ts';
import { CliError } from './errors.ts';

/** Replaces a file atomically. */
export async function replaceFile(path: string, bytes: Uint8Array): Promise<void> {
  const temporary = `${path}.${randomUUID()}.tmp`;
  try {
    await writeFile(temporary, bytes, { flush: true });
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw new CliError(`${path} cannot be written: ${fileProblem(error)}`, { cause: error });
  }
}
