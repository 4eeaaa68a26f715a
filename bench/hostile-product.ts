// `portcullis start` in a process of its own, which is started again when it ends, as a container is.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Connection, connectionAs, KubernetesCluster, loadKubeconfig } from '../src/cluster/index.ts';
import { VARIABLES } from '../test/cli/containerfile.ts';
import { freePorts } from '../test/cluster/free-ports.ts';
import { residentMiB, threadsCpuMs } from './processes.ts';

const PROGRAM = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const MEMORY_LIMIT = new URL('./memory-limit.mjs', import.meta.url).href;
/** Interval of samples of the memory. Milliseconds. */
const SAMPLE_MS = 50;
/** The machine has other work: a process with this many times its limit is ended. */
const ENDED_AT_LIMITS = 4;
/** Starts after an unclean end, in all. */
const MAX_STARTS = 50;
/** Pause before a restart. Milliseconds. */
const RESTART_MS = 500;
/** Lines of output that are shown when a process ended. */
const SHOWN_LINES = 8;

/** Since the last call of {@link Product.takeFigures}. */
export interface ProductFigures {
  /** Largest resident memory of the process with its children. MiB. */
  readonly peakMiB: number;
  readonly workerRestarts: number;
  readonly processRestarts: number;
}

export class Product implements AsyncDisposable {
  readonly #folder: string;
  readonly #limitMiB: number;
  readonly #ports: readonly number[];
  readonly #sampling: NodeJS.Timeout;
  #child: ChildProcess | undefined;
  #output: string[] = [];
  #connection: Connection | undefined;
  #isStopping = false;
  #starts = 0;
  #peakMiB = 0;
  #workerRestarts = 0;
  #processRestarts = 0;

  private constructor(folder: string, limitMiB: number, ports: readonly number[]) {
    this.#folder = folder;
    this.#limitMiB = limitMiB;
    this.#ports = ports;
    this.#sampling = setInterval(() => this.#sample(), SAMPLE_MS);
  }

  /** @param folder of its data, and of modules that references name relative to it */
  static async start(folder: string, limitMiB: number): Promise<Product> {
    const product = new Product(folder, limitMiB, await freePorts(3));
    await product.#spawn();
    const { connection } = await loadKubeconfig({ paths: [join(folder, 'data', 'kubeconfig')], env: {} });
    product.#connection = connection;
    return product;
  }

  get admissionPort(): number {
    return this.#ports[0] ?? 0;
  }

  get connection(): Connection {
    if (this.#connection === undefined) {
      throw new Error('the product is not started');
    }
    return this.#connection;
  }

  /** Processor time so far. Milliseconds. */
  get cpuMs(): number {
    return threadsCpuMs(this.#child?.pid ?? Number.NaN);
  }

  /** A client as a user; default: the administrator. */
  client(user?: string): KubernetesCluster {
    const groups = ['system:authenticated'];
    return new KubernetesCluster(
      user === undefined ? this.connection : connectionAs(this.connection, { user, groups }),
      { requestTimeoutMs: 30_000 },
    );
  }

  async takeFigures(): Promise<ProductFigures> {
    this.#sample();
    const workerRestarts = await this.#countWorkerRestarts();
    const figures = {
      peakMiB: this.#peakMiB,
      // The count of a new process begins at 0.
      workerRestarts: this.#processRestarts > 0 ? workerRestarts : workerRestarts - this.#workerRestarts,
      processRestarts: this.#processRestarts,
    };
    this.#workerRestarts = workerRestarts;
    this.#processRestarts = 0;
    this.#peakMiB = 0;
    this.#forgetPeak();
    return figures;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true;
    clearInterval(this.#sampling);
    const child = this.#child;
    if (child !== undefined && child.exitCode === null && child.signalCode === null) {
      const exit = once(child, 'exit');
      child.kill('SIGKILL');
      await exit;
    }
  }

  async #spawn(): Promise<void> {
    this.#starts += 1;
    const [port, operationsPort, clusterPort] = this.#ports;
    const args = Object.entries({ port, 'operations-port': operationsPort, 'cluster-port': clusterPort });
    const child = spawn(
      process.execPath,
      [PROGRAM, 'start', '--data-dir', 'data', ...args.flatMap(([name, value]) => [`--${name}`, String(value)])],
      {
        cwd: this.#folder,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: {
          ...process.env,
          ...VARIABLES,
          NODE_OPTIONS: `${VARIABLES['NODE_OPTIONS'] ?? ''} --import ${MEMORY_LIMIT}`,
          PORTCULLIS_BENCH_LIMIT_BYTES: String(this.#limitMiB * 2 ** 20),
        },
      },
    );
    this.#child = child;
    const greeted = Promise.withResolvers<void>();
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        writeFileSync(join(this.#folder, 'output.log'), text, { flag: 'a' });
        this.#output = [...this.#output, ...text.trimEnd().split('\n')].slice(-SHOWN_LINES);
        if (text.includes('Ctrl-C stops.')) {
          greeted.resolve();
        }
      });
    }
    child.once('exit', (code, signal) => {
      greeted.reject(new Error(`it ended before it greeted:\n${this.#output.join('\n')}`));
      void this.#restart(signal ?? `code ${code}`);
    });
    await greeted.promise;
  }

  async #restart(how: string): Promise<void> {
    if (this.#isStopping) {
      return;
    }
    this.#processRestarts += 1;
    console.log(`  the process ended (${how}):\n    ${this.#output.join('\n    ')}`);
    if (this.#starts < MAX_STARTS) {
      await sleep(RESTART_MS);
      // An end before its greeting is another restart.
      await this.#spawn().catch(() => undefined);
    }
  }

  #sample(): void {
    const pid = this.#child?.pid;
    if (pid === undefined) {
      return;
    }
    const children = childrenOf(pid).reduce((total, child) => total + known(residentMiB(child)), 0);
    this.#peakMiB = Math.max(this.#peakMiB, known(residentMiB(pid)) + children, known(peakMiB(pid)));
    if (residentMiB(pid) > this.#limitMiB * ENDED_AT_LIMITS) {
      this.#child?.kill('SIGKILL');
    }
  }

  /** Resets the peak that the system has recorded: proc_pid_clear_refs(5). */
  #forgetPeak(): void {
    try {
      writeFileSync(`/proc/${this.#child?.pid}/clear_refs`, '5');
    } catch {
      // Without it, the peak is that of all classes so far.
    }
  }

  async #countWorkerRestarts(): Promise<number> {
    const response = await fetch(`http://127.0.0.1:${this.#ports[1]}/metrics`);
    const lines = (await response.text()).matchAll(/^portcullis_worker_restarts_total\S* (\d+)$/gm);
    return [...lines].reduce((total, [, count]) => total + Number(count), 0);
  }
}

/** The largest resident memory since the peak was reset. MiB; NaN without /proc. */
function peakMiB(pid: number): number {
  try {
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
  } catch {
    return Number.NaN;
  }
}

/** The processes that a process started, by the parents of all. */
function childrenOf(pid: number): readonly number[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry) && parentOf(entry) === pid)
    .map(Number);
}

function parentOf(pid: string): number {
  try {
    return Number(/^\d+ \(.*\) \S (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]);
  } catch {
    return Number.NaN;
  }
}

function known(value: number): number {
  return Number.isNaN(value) ? 0 : value;
}
