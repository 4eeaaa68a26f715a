// `portcullis start` in a process of its own, which is started again when it ends, as a container is.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Connection, connectionAs, KubernetesCluster, loadKubeconfig } from '../src/cluster/index.ts';
import { NODE_FLAGS } from '../bin/find-node.mjs';
import { VARIABLES } from '../tools/image/image-config.ts';
import { freePorts } from '../test/cluster/free-ports.ts';
import { type MemoryLimit, memoryUse } from './memory-limit.ts';
import { cpuMs } from './processes.ts';

const PROGRAM = fileURLToPath(new URL('../dist/cli/program/main.js', import.meta.url));
/** Interval of samples of the memory. Milliseconds. */
const SAMPLE_MS = 50;
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
  readonly #limit: MemoryLimit;
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

  private constructor(folder: string, limit: MemoryLimit, ports: readonly number[]) {
    this.#folder = folder;
    this.#limit = limit;
    this.#ports = ports;
    this.#sampling = setInterval(() => this.#sample(), SAMPLE_MS);
  }

  /** @param folder of its data, and of modules that references name relative to it */
  static async start(folder: string, limit: MemoryLimit): Promise<Product> {
    const product = new Product(folder, limit, await freePorts(3));
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
    return cpuMs(this.#child?.pid ?? Number.NaN);
  }

  /** Sends it a signal. */
  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
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
    const flags = Object.entries({ port, 'operations-port': operationsPort, 'cluster-port': clusterPort });
    const { file, args, env } = this.#limit.limited({
      file: process.execPath,
      args: [
        ...NODE_FLAGS,
        PROGRAM,
        'start',
        '--data-dir',
        'data',
        ...flags.flatMap(([name, value]) => [`--${name}`, String(value)]),
      ],
      env: { ...process.env, ...VARIABLES },
    });
    const child = spawn(file, args, { cwd: this.#folder, stdio: ['ignore', 'pipe', 'pipe'], env });
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
    const memory = memoryUse(pid);
    this.#peakMiB = Math.max(this.#peakMiB, memory.all, memory.peak);
    this.#limit.check(pid, memory);
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
