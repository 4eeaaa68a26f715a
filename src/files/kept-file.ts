// A file of JSON in which a server keeps what it knows for its next start.
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, statSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { LogEntry } from '../log/index.ts';
import { parseJson } from '../values/index.ts';

export interface KeptFileOptions {
  /** Where the file lies; created when missing. */
  readonly folder: string;
  readonly name: string;
  /** Changes within this time are written once. Milliseconds. */
  readonly delayMs: number;
  /** A longer file is not read. Bytes. Default: any length. */
  readonly maxBytes?: number;
  /** Said when it cannot be written. */
  readonly unwritable: string;
  /** Said when it cannot be read, and was set aside. */
  readonly unreadable: string;
  readonly log: (entry: LogEntry) => void;
}

/** Written as a whole, for its owner only; never half of it, whenever the process ends. */
export class KeptFile {
  readonly #options: KeptFileOptions;
  readonly #path: string;
  #timer: NodeJS.Timeout | undefined;
  /** What is to be written when the time has come. */
  #pending: (() => unknown) | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: KeptFileOptions) {
    mkdirSync(options.folder, { recursive: true, mode: 0o700 });
    this.#options = options;
    this.#path = join(options.folder, options.name);
  }

  /**
   * What the file has; undefined when there is none. A file that cannot be read is set aside and said.
   * @param parse throws when the content is not what it expects
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

  /** Writes soon; the content is asked for when it is written. */
  changed(content: () => unknown): void {
    this.#pending ??= content;
    this.#timer ??= setTimeout(() => void this.flush(), this.#options.delayMs).unref();
  }

  /** Writes now what was to be written soon. Resolves when all is written; a write that fails is logged. */
  flush(): Promise<void> {
    const pending = this.#pending;
    return pending === undefined ? this.#writing : this.write(pending());
  }

  /** Writes this now, in place of what was to be written; a write that fails is logged. */
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
      // Nothing to keep, then.
    }
    log({ level: 'warn', message: unreadable, fields: { file: aside, error: String(error) } });
  }
}
