// Watches the contents of files (policies.yml, certificates), however they change: rewritten in place, replaced by
// rename, or behind a chain of symbolic links, as Kubernetes updates ConfigMaps and Secrets.
import { type FSWatcher, watch } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { dirname } from 'node:path';
import { readWholeFile } from './read-file.ts';

/** Delay of a read after a notification: editors and the kubelet make several changes in a row. Milliseconds. */
const SETTLE_MS = 20;
/** Interval of reads without a notification: network file systems and some overlays send none. Milliseconds. */
const POLL_MS = 5_000;

/** Contents of the watched files, in the order of their paths. */
export type Contents = readonly Buffer[];

/** Receives the reads of a {@link FileWatch}. Calls are never concurrent. */
export interface FileWatchListener {
  /** The contents, or the paths, differ from those last reported. */
  changed(contents: Contents, paths: readonly string[]): void | Promise<void>;
  /** A file cannot be read; the last contents stay valid. Called once for each new failure. */
  failed(error: Error): void;
}

/** The paths of the watched files: fixed, or listed before each read. */
export type WatchedPaths = readonly string[] | (() => Promise<readonly string[]>);

/** Reports the contents of a set of files at the start and after each change, as one consistent read. */
export class FileWatch {
  readonly #paths: WatchedPaths;
  readonly #listener: FileWatchListener;
  readonly #pollMs: number;
  #watchers: FSWatcher[] = [];
  #watched = '';
  #timer: NodeJS.Timeout | undefined;
  #known = '';
  #failure = '';
  #running: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(paths: WatchedPaths, listener: FileWatchListener, pollMs: number = POLL_MS) {
    this.#paths = paths;
    this.#listener = listener;
    this.#pollMs = pollMs;
  }

  /** Reads and reports the files, then keeps watching. */
  async start(): Promise<void> {
    await this.check();
  }

  /** Reads the files now and reports a change; resolves when the listener has returned. */
  check(): Promise<void> {
    this.#running = this.#running.then(() => this.#read());
    return this.#running;
  }

  /** Makes the next check report the contents again, even if unchanged, because the listener could not use them. */
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
      const paths = await this.#list();
      await this.#watchDirectories(paths);
      const contents = await this.#contents(paths);
      const known = fingerprint(paths, contents);
      this.#failure = '';
      if (known !== this.#known) {
        this.#known = known;
        await this.#listener.changed(contents, paths);
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

  async #list(): Promise<readonly string[]> {
    return typeof this.#paths === 'function' ? await this.#reading(this.#paths()) : this.#paths;
  }

  #contents(paths: readonly string[]): Promise<Contents> {
    return this.#reading(Promise.all(paths.map((path) => readWholeFile(path))));
  }

  /** When the listener gets a failure, files that are back are reported even if unchanged. */
  async #reading<Result>(read: Promise<Result>): Promise<Result> {
    try {
      return await read;
    } catch (error) {
      this.#known = '';
      throw error;
    }
  }

  /** Watches every directory in the paths, because a swapped link causes notifications only where the link is. */
  async #watchDirectories(paths: readonly string[]): Promise<void> {
    const directories = new Set(paths.map((path) => dirname(path)));
    for (const path of paths) {
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
        // The watcher of a deleted directory ends; polling continues and finds its replacement.
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

function fingerprint(paths: readonly string[], contents: Contents): string {
  const hash = createHash('sha256');
  for (const [index, content] of contents.entries()) {
    hash.update(`${paths[index] ?? ''}\n${content.length}\n`).update(content);
  }
  return hash.digest('hex');
}
