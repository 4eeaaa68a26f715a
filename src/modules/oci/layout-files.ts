import { open } from 'node:fs/promises';
import { join } from 'node:path';

import { ModuleError, systemCode } from '../errors.ts';
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
      await using file = await open(index === undefined ? place : this.path);
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
      const code = systemCode(error) ?? (error instanceof RangeError ? 'it changed' : 'unknown error');
      throw new ModuleError(
        code === 'ENOENT' ? 'source-not-found' : 'file-unreadable',
        `${place}, of ${shown}, cannot be read (${code})`,
        { cause: error },
      );
    }
  }
}

/** The index of a tarball; undefined for a folder. */
async function indexOf(path: string): Promise<ReadonlyMap<string, TarballFile> | undefined> {
  await using file = await open(path);
  return (await file.stat()).isDirectory() ? undefined : await indexTarball(file, path);
}

async function wholeFile(file: Awaited<ReturnType<typeof open>>): Promise<TarballFile | undefined> {
  const status = await file.stat();
  return status.isFile() ? { offset: 0, size: status.size } : undefined;
}
