// Limits the memory of a process and its children: by a control group, or by ending what exceeds the limit.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { residentMiB } from './processes.ts';

const GROUPS = '/sys/fs/cgroup';
const CONSTRAINED_MEMORY = new URL('./constrained-memory.mjs', import.meta.url).href;

/** A program with its arguments and variables. */
interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

/** A limit of memory, and how it is enforced. */
export interface MemoryLimit extends Disposable {
  readonly mib: number;
  readonly how: string;
  /** The command that runs within the limit. */
  limited(command: Command): Command;
  /** Called with a process every few milliseconds, and with the memory that it and its children have. */
  check(pid: number, memory: MemoryUse): void;
}

/** MiB. */
export interface MemoryUse {
  /** The process, the largest since its peak was reset. */
  readonly peak: number;
  /** The process and its children, now. */
  readonly all: number;
}

/** The limit, by a control group where that can be created. */
export function memoryLimit(mib: number): MemoryLimit {
  try {
    return new ControlGroup(mib);
  } catch (error) {
    return new WatchedMemory(mib, error instanceof Error ? error.message : String(error));
  }
}

/** A control group (v2) of its own: https://docs.kernel.org/admin-guide/cgroup-v2.html#memory */
class ControlGroup implements MemoryLimit {
  readonly mib: number;
  readonly how = 'which a control group enforces';
  readonly #folder = join(GROUPS, `portcullis-bench-${process.pid}`);

  constructor(mib: number) {
    this.mib = mib;
    const controllers = join(GROUPS, 'cgroup.subtree_control');
    if (!existsSync(controllers) || !readFileSync(controllers, 'utf8').split(/\s/).includes('memory')) {
      throw new Error(`${GROUPS} has no controller of memory (v2)`);
    }
    mkdirSync(this.#folder);
    try {
      writeFileSync(join(this.#folder, 'memory.max'), String(mib * 2 ** 20));
      writeFileSync(join(this.#folder, 'memory.swap.max'), '0');
    } catch (error) {
      rmdirSync(this.#folder);
      throw error;
    }
  }

  /** The shell enters the group before it becomes the program. */
  limited({ file, args, env }: Command): Command {
    const script = 'echo $$ > "$0" && exec "$@"';
    return { file: '/bin/sh', args: ['-c', script, join(this.#folder, 'cgroup.procs'), file, ...args], env };
  }

  check(): void {
    // The system ends what exceeds it.
  }

  [Symbol.dispose](): void {
    try {
      rmdirSync(this.#folder);
    } catch {
      // A process that is ending is still in it.
    }
  }
}

/** Ends what a system would end: of the processes together, the one with the highest score. */
class WatchedMemory implements MemoryLimit {
  readonly mib: number;
  readonly how: string;

  constructor(mib: number, why: string) {
    this.mib = mib;
    this.how = `which the bench enforces by SIGKILL, because ${why}`;
  }

  limited({ file, args, env }: Command): Command {
    return {
      file,
      args,
      env: {
        ...env,
        NODE_OPTIONS: `${env['NODE_OPTIONS'] ?? ''} --import ${CONSTRAINED_MEMORY}`,
        PORTCULLIS_BENCH_LIMIT_BYTES: String(this.mib * 2 ** 20),
      },
    };
  }

  check(pid: number, { peak, all }: MemoryUse): void {
    if (peak > this.mib) {
      process.kill(pid, 'SIGKILL');
    } else if (all > this.mib) {
      const [victim = pid] = [pid, ...childrenOf(pid)].toSorted((a, b) => scoreOf(b) - scoreOf(a));
      process.kill(victim, 'SIGKILL');
    }
  }

  [Symbol.dispose](): void {
    // Nothing was created.
  }
}

/** Memory of a process and its children. */
export function memoryUse(pid: number): MemoryUse {
  const children = childrenOf(pid).reduce((total, child) => total + known(residentMiB(child)), 0);
  return { peak: known(peakMiB(pid)), all: known(residentMiB(pid)) + children };
}

/** How likely the system ends a process that is out of memory: proc_pid_oom_score(5). */
function scoreOf(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/oom_score`, 'utf8'));
  } catch {
    return -Infinity;
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
