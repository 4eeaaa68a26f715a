// Limits the memory of processes: ends what exceeds a limit, as a system would.
import { readdirSync, readFileSync } from 'node:fs';
import { residentMiB } from './processes.ts';

const CONSTRAINED_MEMORY = new URL('./constrained-memory.mjs', import.meta.url).href;

/** Largest memory of a process with its children, by the command of the product that it is. MiB. */
export type MemoryLimits = ReadonlyMap<string, number>;

/** MiB. */
export interface MemoryUse {
  /** The process, the largest since its peak was reset. */
  readonly peak: number;
  /** The process and its children, now. */
  readonly all: number;
}

/** Variables with which the processes of a program see their limits. */
export function limitedVariables(env: NodeJS.ProcessEnv, limits: MemoryLimits): NodeJS.ProcessEnv {
  return {
    ...env,
    NODE_OPTIONS: `${env['NODE_OPTIONS'] ?? ''} --import ${CONSTRAINED_MEMORY}`,
    PORTCULLIS_BENCH_LIMITS: JSON.stringify(Object.fromEntries(limits)),
  };
}

/** Of a process and its children, ends the one with the highest score when they exceed the limit. */
export function enforceLimit(pid: number, { peak, all }: MemoryUse, mib: number): void {
  if (peak > mib) {
    process.kill(pid, 'SIGKILL');
  } else if (all > mib) {
    const [victim = pid] = [pid, ...childrenOf(pid)].toSorted((a, b) => scoreOf(b) - scoreOf(a));
    process.kill(victim, 'SIGKILL');
  }
}

/** Memory of a process and its children. */
export function memoryUse(pid: number): MemoryUse {
  const children = childrenOf(pid).reduce((total, child) => total + known(residentMiB(child)), 0);
  return { peak: known(peakMiB(pid)), all: known(residentMiB(pid)) + children };
}

/** The processes that the threads of a process started: proc_pid_task(5). */
export function childrenOf(pid: number): readonly number[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
      .flatMap((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' '))
      .filter((child) => child !== '')
      .map(Number);
  } catch {
    // A process or a thread that has just ended.
    return [];
  }
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

function known(value: number): number {
  return Number.isNaN(value) ? 0 : value;
}
