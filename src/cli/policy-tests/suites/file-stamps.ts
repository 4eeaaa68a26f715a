// Detects changes of files by polling, which works on every file system, and for files that appear and disappear.
import { statSync } from 'node:fs';

/** The state of a set of files when each was added. */
export class FileStamps {
  readonly #stamps = new Map<string, string>();

  /** Adds a file; to be called before the file is read, so that a later change is detected. */
  add(path: string): void {
    if (!this.#stamps.has(path)) {
      this.#stamps.set(path, stampOf(path));
    }
  }

  /** Whether a file was changed, created or deleted since it was added. */
  hasChanged(): boolean {
    return [...this.#stamps].some(([path, stamp]) => stampOf(path) !== stamp);
  }
}

function stampOf(path: string): string {
  try {
    const { mtimeMs, size, ino } = statSync(path);
    return `${mtimeMs} ${size} ${ino}`;
  } catch {
    return 'none';
  }
}
