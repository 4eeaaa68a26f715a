// Processor time of threads of this process, as Linux counts it. `worker.cpuUsage()` asks the thread itself, which does not answer
// while it is in native code.
import { readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';

const NANOSECONDS_PER_MS = 1e6;
const MICROSECONDS_PER_MS = 1e3;

/** The system's id of the current thread; undefined where the system has no /proc. */
export function nativeThreadId(): number | undefined {
  try {
    return Number(basename(readlinkSync('/proc/thread-self')));
  } catch {
    return undefined;
  }
}

/** Processor time of a thread of this process so far; undefined when it has ended, or the system does not tell. Milliseconds. */
export function threadCpuMs(nativeId: number): number | undefined {
  try {
    return Number.parseInt(readFileSync(`/proc/self/task/${nativeId}/schedstat`, 'utf8'), 10) / NANOSECONDS_PER_MS;
  } catch {
    return undefined;
  }
}

/** Processor time of the current thread so far. Milliseconds. */
export function ownCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / MICROSECONDS_PER_MS;
}
