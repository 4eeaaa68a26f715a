// `portcullis start`, which is started again when it ends, as a container is. Each of its processes has a memory limit of its own.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Connection, connectionAs, KubernetesCluster, loadKubeconfig } from '../src/cluster/index.ts';
import { NODE_FLAGS } from '../bin/find-node.mjs';
import { VARIABLES } from '../tools/image/image-config.ts';
import { freePorts } from '../test/cluster/free-ports.ts';
import { childrenOf, enforceLimit, limitedVariables, type MemoryLimits, memoryUse } from './memory-limit.ts';
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
/** What `start` prints when it starts a process again. */
const PROCESS_ENDED = 'a process ended, it is started again';

/** Since the last call of {@link Product.takeFigures}. */
export interface ProductFigures {
  /** Largest resident memory of each process with its children, by its command. MiB. */
  readonly peaks: ReadonlyMap<string, number>;
  readonly workerRestarts: number;
  readonly processRestarts: number;
}

export class Product implements AsyncDisposable {
  readonly #folder: string;
  readonly #limits: MemoryLimits;
  readonly #ports: readonly number[];
  readonly #sampling: NodeJS.Timeout;
  #child: ChildProcess | undefined;
  #output: string[] = [];
  #connection: Connection | undefined;
  #isStopping = false;
  #starts = 0;
  #peaks = new Map<string, number>();
  #workerRestarts = 0;
  #processRestarts = 0;

  private constructor(folder: string, limits: MemoryLimits, ports: readonly number[]) {
    this.#folder = folder;
    this.#limits = limits;
    this.#ports = ports;
    this.#sampling = setInterval(() => this.#sample(), SAMPLE_MS);
  }

  /** @param folder of its data, and of modules that references name relative to it */
  static async start(folder: string, limits: MemoryLimits): Promise<Product> {
    const product = new Product(folder, limits, await freePorts(3));
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

  /** Processor time so far of the processes that run. Milliseconds. */
  get cpuMs(): number {
    const pid = this.#child?.pid ?? Number.NaN;
    return [pid, ...childrenOf(pid)].reduce((total, one) => total + cpuMs(one), 0);
  }

  /** Sends a signal to each process of `start`. Returns their commands. */
  signal(signal: NodeJS.Signals): readonly string[] {
    const processes = this.#processes();
    processes.forEach(({ pid }) => process.kill(pid, signal));
    return processes.map(({ command }) => command);
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
      peaks: this.#peaks,
      // The count of a new process begins at 0.
      workerRestarts: this.#processRestarts > 0 ? workerRestarts : workerRestarts - this.#workerRestarts,
      processRestarts: this.#processRestarts,
    };
    this.#workerRestarts = workerRestarts;
    this.#processRestarts = 0;
    this.#peaks = new Map();
    this.#processes().forEach(({ pid }) => forgetPeak(pid));
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
    const args = flags.map(([name, value]) => `--${name}=${value}`);
    const child = spawn(process.execPath, [...NODE_FLAGS, PROGRAM, 'start', '--data-dir', 'data', ...args], {
      cwd: this.#folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: limitedVariables({ ...process.env, ...VARIABLES }, this.#limits),
    });
    this.#child = child;
    const greeted = Promise.withResolvers<void>();
    for (const input of [child.stdout, child.stderr]) {
      createInterface({ input }).on('line', (line) => {
        this.#noteLine(line);
        if (line.includes('Ctrl-C stops.')) {
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

  #noteLine(line: string): void {
    writeFileSync(join(this.#folder, 'output.log'), `${line}\n`, { flag: 'a' });
    this.#output = [...this.#output, line].slice(-SHOWN_LINES);
    if (line.includes(PROCESS_ENDED)) {
      this.#processRestarts += 1;
      console.log(`  ${line}`);
    }
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
    for (const { pid, command } of this.#processes()) {
      const memory = memoryUse(pid);
      this.#peaks.set(command, Math.max(this.#peaks.get(command) ?? 0, memory.all, memory.peak));
      enforceLimit(pid, memory, this.#limits.get(command) ?? Infinity);
    }
  }

  /** The processes that `start` has now. */
  #processes(): readonly { readonly pid: number; readonly command: string }[] {
    return childrenOf(this.#child?.pid ?? Number.NaN).flatMap((pid) => {
      const command = commandOf(pid);
      return command === undefined ? [] : [{ pid, command }];
    });
  }

  async #countWorkerRestarts(): Promise<number> {
    const response = await fetch(`http://127.0.0.1:${this.#ports[1]}/metrics`);
    const lines = (await response.text()).matchAll(/^portcullis_worker_restarts_total\S* (\d+)$/gm);
    return [...lines].reduce((total, [, count]) => total + Number(count), 0);
  }
}

/** The command of the product that a process is; undefined when it has ended or not begun. */
function commandOf(pid: number): string | undefined {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    return words[words.indexOf(PROGRAM) + 1];
  } catch {
    return undefined;
  }
}

/** Resets the peak that the system has recorded: proc_pid_clear_refs(5). */
function forgetPeak(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, '5');
  } catch {
    // Without it, the peak is that of all classes so far.
  }
}
