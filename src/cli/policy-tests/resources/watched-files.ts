import { manifestFiles } from '../../policy/manifests.ts';
import { FileStamps } from '../suites/file-stamps.ts';

/** Files and folders, and other files that a result depends on. */
export class WatchedFiles {
  readonly #paths: readonly string[];
  #files: readonly string[] = [];
  #stamps: FileStamps | undefined;

  constructor(paths: readonly string[]) {
    this.#paths = paths;
  }

  /**
   * The result of some work if a file has changed since the last call, or folders have other files. The first call works.
   * @param work calls `onFile` with the path of each other file before it reads it
   */
  async afterChange<Result>(work: (onFile: (path: string) => void) => Promise<Result>): Promise<Result | undefined> {
    const files = (await Promise.all(this.#paths.map(filesOf))).flat();
    const isSame = files.length === this.#files.length && files.every((file, index) => file === this.#files[index]);
    if (isSame && this.#stamps?.hasChanged() === false) {
      return undefined;
    }
    const stamps = new FileStamps();
    files.forEach((file) => stamps.add(file));
    this.#files = files;
    this.#stamps = stamps;
    return await work((path) => stamps.add(path));
  }
}

/** A folder without manifests is watched itself: reading it says that it has none. */
async function filesOf(path: string): Promise<readonly string[]> {
  try {
    return await manifestFiles(path);
  } catch {
    return [path];
  }
}
