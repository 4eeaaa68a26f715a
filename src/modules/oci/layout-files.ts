import type { FileHandle } from 'node:fs/promises';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';

import { FileError, openFile } from '../../files/index.ts';
import { ModuleError, systemCode } from '../reference/errors.ts';
import { indexTarball, readAt, type TarballFile } from './tarball.ts';

/** The files of an OCI layout: a folder, or a tarball of one, which is indexed once. */
export class LayoutFiles {
  /** Of the folder or tarball. */
  readonly path: string;
  #index: Promise<ReadonlyMap<string, TarballFile> | undefined> | undefined;

  constructor(path: string) {
    this.path = path;
  }

  /**
   * Reads a whole file.
   * @param name relative, with slashes
   * @param shown the artifact, for messages
   * @throws ModuleError `source-not-found`, `size-mismatch`, `file-unreadable`
   */
  async read(name: string, maxBytes: number, shown: string): Promise<Buffer> {
    const place = join(this.path, name);
    try {
      const index = await (this.#index ??= indexOf(this.path));
      await using file = await openFile(index === undefined ? place : this.path);
      const found = index === undefined ? await wholeFile(file) : index.get(name);
      if (found === undefined) {
        throw new ModuleError('source-not-found', `${place}, of ${shown}, is not there`);
      }
      if (found.size > maxBytes) {
        throw new ModuleError(
          'size-mismatch',
          `${place}, of ${shown}, has ${found.size} bytes: expected a file of at most ${maxBytes}`,
        );
      }
      return await readAt(file, found.offset, found.size);
    } catch (error) {
      if (error instanceof ModuleError) {
        throw error;
      }
      const isMissing = systemCode(error) === 'ENOENT';
      const message = `${place}, of ${shown}, cannot be read (${problemOf(error)})`;
      throw new ModuleError(isMissing ? 'source-not-found' : 'file-unreadable', message, { cause: error });
    }
  }
}

/** The index of a tarball; undefined for a folder. */
async function indexOf(path: string): Promise<ReadonlyMap<string, TarballFile> | undefined> {
  if ((await stat(path)).isDirectory()) {
    return undefined;
  }
  await using file = await openFile(path);
  return await indexTarball(file, path);
}

async function wholeFile(file: FileHandle): Promise<TarballFile> {
  return { offset: 0, size: (await file.stat()).size };
}

function problemOf(error: unknown): string {
  if (error instanceof FileError) {
    return error.message;
  }
  return systemCode(error) ?? (error instanceof RangeError ? 'it changed' : 'unknown error');
}
