// A JSON file of a server's state for its next start.
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, statSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { LogEntry } from '../log/index.ts';
import { parseJson } from '../values/index.ts';

export interface KeptFileOptions {
  /** Folder of the file; created when missing. */
  readonly folder: string;
  readonly name: string;
  /** Changes within this time are written once. Milliseconds. */
  readonly delayMs: number;
  /** A larger file is not read. Bytes. Default: no limit. */
  readonly maxBytes?: number;
  /** Log message when the file cannot be written. */
  readonly unwritable: string;
  /** Log message when the file is invalid and was moved aside. */
  readonly unreadable: string;
  readonly log: (entry: LogEntry) => void;
}

/** A file that is replaced atomically, with permissions for its owner only. */
export class KeptFile {
  readonly #options: KeptFileOptions;
  readonly #path: string;
  #timer: NodeJS.Timeout | undefined;
  /** The content of the pending write. */
  #pending: (() => unknown) | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: KeptFileOptions) {
    mkdirSync(options.folder, { recursive: true, mode: 0o700 });
    this.#options = options;
    this.#path = join(options.folder, options.name);
  }

  /**
   * The content; undefined when there is no file. An invalid file is moved aside and logged.
   * @param parse throws when the content is invalid
   */
  read<T>(parse: (content: unknown) => T): T | undefined {
    const { maxBytes = Infinity } = this.#options;
    try {
      const { size } = statSync(this.#path);
      if (size > maxBytes) {
        throw new Error(`expected at most ${maxBytes} bytes, got ${size}`);
      }
      return parse(parseJson(readFileSync(this.#path, 'utf8')));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
        this.#setAside(error);
      }
      return undefined;
    }
  }

  /** Writes soon; `content` is called at that time. */
  changed(content: () => unknown): void {
    this.#pending ??= content;
    this.#timer ??= setTimeout(() => void this.flush(), this.#options.delayMs).unref();
  }

  /** Writes pending changes now. Resolves when everything is written; a failed write is logged. */
  flush(): Promise<void> {
    const pending = this.#pending;
    return pending === undefined ? this.#writing : this.write(pending());
  }

  /** Writes now, and cancels pending changes; a failed write is logged. */
  write(content: unknown): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#pending = undefined;
    const text = JSON.stringify(content);
    this.#writing = this.#writing.then(() => this.#write(text));
    return this.#writing;
  }

  async #write(text: string): Promise<void> {
    // Replicas on several machines may share the folder.
    const temporary = `${this.#path}.${randomBytes(6).toString('hex')}.new`;
    try {
      await using file = await open(temporary, 'w', 0o600);
      await file.writeFile(text);
      await file.sync();
      await file.close();
      await rename(temporary, this.#path);
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => undefined);
      const { log, unwritable } = this.#options;
      log({
        level: 'error',
        message: unwritable,
        fields: { folder: dirname(this.#path), error: String(error) },
      });
    }
  }

  #setAside(error: unknown): void {
    const { log, unreadable } = this.#options;
    const aside = `${this.#path}.unreadable`;
    try {
      renameSync(this.#path, aside);
    } catch {
      // There is no file to move aside.
    }
    log({ level: 'warn', message: unreadable, fields: { file: aside, error: String(error) } });
  }
}
