// A long-running command as a process, and its log.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { COMMAND, ENVIRONMENT, ROOT } from './command.ts';

export type Line = Readonly<Record<string, unknown>>;

/** Processor time of a thread that is stuck. Seconds. */
const STUCK_SECONDS = 4;

export class LoggingProcess implements AsyncDisposable {
  readonly #child;
  readonly #lines: Line[] = [];
  #told = 0;
  #waiting: (() => void) | undefined;

  /**
   * @param args the command, which has the flag `--log-fmt`, and its arguments
   * @param nodeFlags of Node itself
   */
  constructor(args: readonly string[], env: Readonly<Record<string, string>> = {}, nodeFlags: readonly string[] = []) {
    this.#child = spawn(process.execPath, [...nodeFlags, COMMAND, ...args, '--log-fmt', 'json'], {
      cwd: ROOT,
      env: { ...ENVIRONMENT, ...env },
    });
    let rest = '';
    const read = (text: string): void => {
      const lines = `${rest}${text}`.split('\n');
      rest = lines.pop() ?? '';
      this.#lines.push(...lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as Line));
      this.#waiting?.();
    };
    this.#child.stdout.setEncoding('utf8').on('data', read);
    this.#child.stderr.setEncoding('utf8').on('data', read);
    this.#child.once('exit', () => this.#waiting?.());
  }

  /** The next line with a message, after the lines that were returned before. */
  async says(message: string): Promise<Line> {
    for (;;) {
      const index = this.#lines.findIndex(({ msg }, at) => at >= this.#told && msg === message);
      const line = this.#lines[index];
      if (line !== undefined) {
        this.#told = index + 1;
        return line;
      }
      assert.equal(this.#child.exitCode, null, `it ended before it said "${message}": ${JSON.stringify(this.#lines)}`);
      await new Promise<void>((resolve) => (this.#waiting = resolve));
    }
  }

  /** Whether a thread beside the main thread has used more processor time than a deadline allows: it does not end. */
  hasStuckThread(): boolean {
    const tasks = `/proc/${this.#child.pid ?? 0}/task`;
    const threads = readdirSync(tasks).filter((thread) => thread !== `${this.#child.pid}`);
    return threads.some((thread) => processorSeconds(`${tasks}/${thread}/schedstat`) > STUCK_SECONDS);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async ended(): Promise<number | null> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      await once(this.#child, 'exit');
    }
    return this.#child.exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.ended();
  }
}

/** Nothing for a thread that ended. */
function processorSeconds(file: string): number {
  try {
    return Number.parseInt(readFileSync(file, 'utf8'), 10) / 1e9;
  } catch {
    return 0;
  }
}
