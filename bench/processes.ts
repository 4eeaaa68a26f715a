// Shared by the benches: child processes, load generators, tables, and the load of the machine.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** Processor time of a process so far, of all threads. Milliseconds, in steps of 10; NaN without /proc. */
export function cpuMs(pid: number): number {
  try {
    // Fields 14 and 15 of proc_pid_stat(5), in clock ticks of 10 ms. The name in parentheses may contain spaces.
    const [, fields = ''] = /^.*\) (.*)$/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8').trim()) ?? [];
    const ticks = fields.split(' ');
    return (Number(ticks[11]) + Number(ticks[12])) * 10;
  } catch {
    return Number.NaN;
  }
}

/** Processor time so far of the threads that a process has now. Milliseconds, in nanosecond steps; NaN without /proc. */
export function threadsCpuMs(pid: number): number {
  try {
    const threads = readdirSync(`/proc/${pid}/task`).map((thread) => threadCpuMs(`/proc/${pid}/task/${thread}`));
    return threads.reduce((total, milliseconds) => total + milliseconds, 0);
  } catch {
    return Number.NaN;
  }
}

/** 0 for a thread that just ended. */
function threadCpuMs(folder: string): number {
  try {
    return Number(readFileSync(`${folder}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
  } catch {
    return 0;
  }
}

/** Resident memory of a process. MiB; NaN without /proc. */
export function residentMiB(pid: number): number {
  try {
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
  } catch {
    return Number.NaN;
  }
}

/** Most resident memory that a process had so far. MiB; 0 without /proc. */
export function peakMiB(pid: number): number {
  try {
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}

/** A child process with a line protocol, which ends when its stdin ends. */
export class LineProcess {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #interface: Interface;

  /** @param env variables besides those of this process */
  constructor(
    script: string,
    args: readonly string[],
    nodeFlags: readonly string[] = [],
    env: Readonly<Record<string, string>> = {},
  ) {
    const path = fileURLToPath(new URL(script, import.meta.url));
    this.#child = spawn(process.execPath, [...nodeFlags, path, ...args], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, ...env },
    });
    if (this.#child.stdout === null) {
      throw new Error(`no output of ${script}`);
    }
    this.#interface = createInterface({ input: this.#child.stdout });
    this.#lines = this.#interface[Symbol.asyncIterator]();
  }

  /** The next line of its output. */
  async line(): Promise<string> {
    const { value, done } = await this.#lines.next();
    if (done === true) {
      throw new Error('the process ended before it answered');
    }
    return value;
  }

  /** Sends a line. */
  send(text: string): void {
    this.#child.stdin?.write(`${text}\n`);
  }

  /** Processor time so far, of all threads. Milliseconds; NaN without /proc. */
  cpuMs(): number {
    return cpuMs(this.#child.pid ?? Number.NaN);
  }

  /** Ends the process, and waits for its exit. */
  async end(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const gone = new Promise((resolve) => this.#child.once('exit', resolve));
      this.#child.stdin?.end();
      await gone;
    }
    this.#interface.close();
  }
}

/** Load on an admission port. */
export interface LoadOptions {
  readonly url: string;
  readonly bodyFile: string;
  readonly connections: number;
  readonly seconds: number;
  /** Requests per second over all connections. Default: as fast as answers come. */
  readonly rate?: number;
}

/** Times in milliseconds. */
export interface LoadResult {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  /** Answered requests. */
  readonly requests: number;
  /** Answers other than HTTP 2xx, broken connections, timeouts. */
  readonly failed: number;
}

/** Runs the client on node:https in its own process. */
export async function loadFromNode(options: LoadOptions): Promise<LoadResult> {
  const child = new LineProcess('./client.ts', [JSON.stringify(options)]);
  const result = JSON.parse(await child.line()) as LoadResult;
  await child.end();
  return result;
}

/** Runs autocannon in its own process: TLS, keep-alive, one request at a time on each connection. */
export async function load(options: LoadOptions): Promise<LoadResult> {
  const { url, bodyFile, connections, seconds, rate } = options;
  const autocannon = fileURLToPath(new URL('../node_modules/autocannon/autocannon.js', import.meta.url));
  const args = [autocannon, '-c', String(connections), '-d', String(seconds), '-m', 'POST', '-i', bodyFile];
  args.push(
    '-H',
    'content-type=application/json',
    '--json',
    '-n',
    ...(rate === undefined ? [] : ['-R', String(rate)]),
    url,
  );
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 16 * 1024 * 1024 });
  const result = JSON.parse(stdout) as AutocannonResult;
  const { p50, p99 } = result.latency;
  return {
    requests: result.requests.total,
    perSecond: result.requests.mean,
    p50,
    p99,
    failed: result.non2xx + result.errors + result.timeouts,
  };
}

interface AutocannonResult {
  readonly requests: { readonly mean: number; readonly total: number };
  readonly latency: { readonly p50: number; readonly p99: number };
  readonly non2xx: number;
  readonly errors: number;
  readonly timeouts: number;
}

/** One line with the machine and its load. */
export function machine(): string {
  const [model] = cpus();
  return `${cpus().length} × ${model?.model ?? 'processor'}, load ${loadavg()
    .map((value) => value.toFixed(1))
    .join(' ')}, Node ${process.version}`;
}

export function printTable(headers: readonly string[], rows: readonly (readonly string[])[]): void {
  const all = [headers, ...rows];
  const widths = headers.map((_, column) => Math.max(...all.map((row) => (row[column] ?? '').length)));
  for (const row of all) {
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('   ')
        .trimEnd(),
    );
  }
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
