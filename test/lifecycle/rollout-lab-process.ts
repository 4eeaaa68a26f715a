// A process of Portcullis that a test can stop, kill and start again with its data on disk.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('../../bin/portcullis.mjs', import.meta.url));
/** Lines of output that are kept for failure messages. */
const KEPT_LINES = 200;

interface LabProcessOptions {
  readonly isLogging?: boolean;
  readonly program?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** A line of the log. */
export type LogEntry = Readonly<Record<string, unknown>> & { readonly msg?: string };

export class LabProcess {
  readonly name: string;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #output: string[] = [];
  readonly #entries: LogEntry[] = [];
  #waiting: { readonly message: string; readonly found: (entry: LogEntry) => void }[] = [];
  readonly #ended: Promise<void>;

  /**
   * `isLogging` is false for a command without a log. `program` is the file with the command line; default: that of the
   * checkout, which runs the TypeScript sources. `env` are variables besides those of this process.
   */
  constructor(
    name: string,
    args: readonly string[],
    cwd: string,
    { isLogging = true, program = PROGRAM, env = {} }: LabProcessOptions = {},
  ) {
    this.name = name;
    const flags = isLogging ? ['--log-fmt', 'json'] : [];
    this.#child = spawn(process.execPath, [program, ...args, ...flags], {
      cwd,
      stdio: 'pipe',
      env: { ...process.env, ...env },
    });
    this.#child.stdin.end();
    this.#ended = once(this.#child, 'exit').then(() => undefined);
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => this.#keep(text));
    createInterface({ input: this.#child.stdout }).on('line', (line) => this.#line(line));
  }

  get pid(): number {
    return this.#child.pid ?? Number.NaN;
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** The exit code; null if a signal ended it. */
  get exit(): Promise<number | null> {
    return this.#ended.then(() => this.#child.exitCode);
  }

  /** The end of its output. */
  get tail(): string {
    return `${this.name}:\n${this.#output.slice(-40).join('\n')}`;
  }

  /** Resolves with the first log line with this message. */
  async logs(message: string): Promise<LogEntry> {
    const entry = this.#entries.find(({ msg }) => msg === message);
    if (entry !== undefined) {
      return entry;
    }
    const { promise, resolve } = Promise.withResolvers<LogEntry>();
    this.#waiting.push({ message, found: resolve });
    const gone = this.#ended.then(() => {
      throw new Error(`ended before it logged "${message}": ${this.tail}`);
    });
    return await Promise.race([promise, gone]);
  }

  /** Its log. */
  get entries(): readonly LogEntry[] {
    return this.#entries;
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    if (this.isRunning) {
      this.#child.kill(signal);
    }
    await this.#ended;
  }

  #keep(text: string): void {
    this.#output.push(text.trimEnd());
    this.#output.splice(0, this.#output.length - KEPT_LINES);
  }

  #line(line: string): void {
    this.#keep(line);
    try {
      const entry = JSON.parse(line) as LogEntry;
      this.#entries.push(entry);
      this.#waiting = this.#waiting.filter(({ message, found }) => {
        if (message === entry.msg) {
          found(entry);
        }
        return message !== entry.msg;
      });
    } catch {
      // Not a log line; kept for failure messages.
    }
  }
}
