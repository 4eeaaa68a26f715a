// Watching files whose content matters (policies.yml, certificates), however they are changed: rewritten in place,
// replaced by rename, or swapped behind a chain of symbolic links as Kubernetes does with ConfigMaps and Secrets.
import { type FSWatcher, watch } from 'node:fs';
import { readFile, realpath } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { dirname } from 'node:path';

/** How long after a notification the files are read: editors and kubelet make several changes in a row. Milliseconds. */
export const SETTLE_MS = 20;
/** How often the files are read without a notification: network file systems and some overlays send none. Milliseconds. */
export const POLL_MS = 5_000;

/** Contents of the watched files, in the order of their paths. */
export type Contents = readonly Buffer[];

/** What a {@link FileWatch} tells. Both are called one at a time, never concurrently. */
export interface FileWatchListener {
  /** The contents differ from those last told. */
  changed(contents: Contents): void | Promise<void>;
  /** A file cannot be read; what was told before stays true. Told once for each new failure. */
  failed(error: Error): void;
}

/** Tells the contents of a set of files at the start, and again whenever they change, as one consistent read. */
export class FileWatch {
  readonly #paths: readonly string[];
  readonly #listener: FileWatchListener;
  readonly #pollMs: number;
  #watchers: FSWatcher[] = [];
  #watched = '';
  #timer: NodeJS.Timeout | undefined;
  #known = '';
  #failure = '';
  #running: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(paths: readonly string[], listener: FileWatchListener, pollMs: number = POLL_MS) {
    this.#paths = paths;
    this.#listener = listener;
    this.#pollMs = pollMs;
  }

  /** Reads the files once and tells them, then keeps watching. */
  async start(): Promise<void> {
    await this.check();
  }

  /** Reads the files now and tells a difference; resolves when the listener has dealt with it. */
  check(): Promise<void> {
    this.#running = this.#running.then(() => this.#read());
    return this.#running;
  }

  /** The next check tells the contents again, even if they are the same: what was told could not be made use of. */
  forget(): void {
    this.#known = '';
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    for (const watcher of this.#watchers) {
      watcher.close();
    }
    this.#watchers = [];
  }

  async #read(): Promise<void> {
    if (this.#stopped) {
      return;
    }
    try {
      await this.#watchDirectories();
      const contents = await this.#contents();
      const known = fingerprint(contents);
      this.#failure = '';
      if (known !== this.#known) {
        this.#known = known;
        await this.#listener.changed(contents);
      }
    } catch (error) {
      const failure = error instanceof Error ? error : new Error(String(error));
      if (failure.message !== this.#failure) {
        this.#failure = failure.message;
        this.#listener.failed(failure);
      }
    } finally {
      this.#schedule(this.#pollMs);
    }
  }

  async #contents(): Promise<Contents> {
    try {
      return await Promise.all(this.#paths.map((path) => readFile(path)));
    } catch (error) {
      // Files that come back are told, even with what they had before: the listener has been told of a failure.
      this.#known = '';
      throw error;
    }
  }

  /** Watches every directory that the paths lead through: a swapped link shows up where the link is, not where it led. */
  async #watchDirectories(): Promise<void> {
    const directories = new Set(this.#paths.map((path) => dirname(path)));
    for (const path of this.#paths) {
      directories.add(dirname(await realpath(path).catch(() => path)));
    }
    const wanted = [...directories].toSorted().join('\n');
    if (wanted === this.#watched || this.#stopped) {
      return;
    }
    for (const watcher of this.#watchers) {
      watcher.close();
    }
    this.#watched = wanted;
    this.#watchers = [...directories].flatMap((directory) => {
      try {
        const watcher = watch(directory, { persistent: false }, () => this.#schedule(SETTLE_MS));
        // A directory that goes away ends its watcher; polling goes on and finds what replaced it.
        watcher.on('error', () => watcher.close());
        return [watcher];
      } catch {
        return [];
      }
    });
  }

  #schedule(delayMs: number): void {
    if (this.#stopped) {
      return;
    }
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.check(), delayMs).unref();
  }
}

function fingerprint(contents: Contents): string {
  const hash = createHash('sha256');
  for (const content of contents) {
    hash.update(`${content.length}\n`).update(content);
  }
  return hash.digest('hex');
}
