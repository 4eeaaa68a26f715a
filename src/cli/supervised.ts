// A process under the supervisor of `start`: what it says over the channel between both, and how it ends with it.
import { startThread } from '../threads/index.ts';

/** The heap of the thread that watches the supervisor, which holds two timers. MiB. */
const THREAD_HEAP_MB = 16;

/** What a process says when it works, such as what it listens on. */
export type Facts = Readonly<Record<string, string>>;

/** Why a process refused to start: the parts of a CliError. */
export interface Refusal {
  readonly message: string;
  readonly hint?: string;
  readonly exitCode: number;
}

/** What a process tells its supervisor. */
export interface Report {
  /** It works. */
  readonly ready?: Facts;
  /** It ends, because it cannot start. */
  readonly refusal?: Refusal;
}

/** Whether a supervisor started this process. */
export function isSupervised(): boolean {
  return process.send !== undefined;
}

/** Tells the supervisor, if there is one. */
export function report(report: Report): void {
  // The supervisor may be gone.
  process.send?.(report, undefined, undefined, () => undefined);
}

/** Calls back when the supervisor is gone, however it ended. If the process takes long to stop then, a thread ends it. */
export function whenOrphaned(callback: () => void): void {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const thread = new URL(`./orphan-thread.${extension}`, import.meta.url);
  startThread(thread, { name: 'orphan', workerData: process.ppid, heapMb: THREAD_HEAP_MB }).unref();
  if (!process.connected) {
    callback();
    return;
  }
  process.once('disconnect', callback);
  // A listener keeps the process alive.
  process.channel?.unref();
}
