// What the benches share: processes that are ended with them, tables, and the machine's load.
import { type ChildProcess, spawn } from 'node:child_process';
import { cpus, loadavg } from 'node:os';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { LoadOptions, LoadResult } from './load.ts';

/** A child process that speaks in lines and ends when its stdin does. */
export class LineProcess {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #interface: Interface;

  constructor(script: string, args: readonly string[], nodeFlags: readonly string[] = []) {
    const path = fileURLToPath(new URL(script, import.meta.url));
    this.#child = spawn(process.execPath, [...nodeFlags, path, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
    if (this.#child.stdout === null) {
      throw new Error(`no output of ${script}`);
    }
    this.#interface = createInterface({ input: this.#child.stdout });
    this.#lines = this.#interface[Symbol.asyncIterator]();
  }

  /** The next line that it prints. */
  async line(): Promise<string> {
    const { value, done } = await this.#lines.next();
    if (done === true) {
      throw new Error('the process ended before it answered');
    }
    return value as string;
  }

  /** Sends a line. */
  send(text: string): void {
    this.#child.stdin?.write(`${text}\n`);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Ends it and waits until it has. */
  async end(): Promise<void> {
    const gone = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.stdin?.end();
    await gone;
    this.#interface.close();
  }
}

/** Runs a load in a process of its own. */
export async function load(options: LoadOptions): Promise<LoadResult> {
  const child = new LineProcess('./load.ts', [JSON.stringify(options)]);
  const result = JSON.parse(await child.line()) as LoadResult;
  await child.end();
  return result;
}

/** One line that says on what machine, and how busy, the figures were taken. */
export function machine(): string {
  const [model] = cpus();
  return `${cpus().length} × ${model?.model ?? 'processor'}, load ${loadavg().map((value) => value.toFixed(1)).join(' ')}, Node ${process.version}`;
}

/** Prints rows under headers, in columns. */
export function printTable(headers: readonly string[], rows: readonly (readonly string[])[]): void {
  const all = [headers, ...rows];
  const widths = headers.map((_, column) => Math.max(...all.map((row) => (row[column] ?? '').length)));
  for (const row of all) {
    console.log(row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('   ').trimEnd());
  }
}

/** The middle one of some figures. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
