// Notices changes of files by looking at them: that works on every file system, for files that come and go, too.
import { statSync } from 'node:fs';

/** The state of a set of files when they were first looked at. */
export class FileStamps {
  readonly #stamps = new Map<string, string>();

  /** Takes a file in; call it before the file is read, so that a change in between is seen later. */
  add(path: string): void {
    if (!this.#stamps.has(path)) {
      this.#stamps.set(path, stampOf(path));
    }
  }

  /** Whether a file has changed, come or gone since it was taken in. */
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
