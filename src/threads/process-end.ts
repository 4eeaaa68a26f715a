import type { Worker } from 'node:worker_threads';

/** How long a thread may take to end. Only native code takes longer: nothing interrupts it. Milliseconds. */
const END_MS = 1_000;

/** Threads of this process that have not exited, ended ones included. */
const running = new Set<Worker>();

/** Notes a thread until it exits. */
export function trackThread(thread: Worker): void {
  running.add(thread);
  thread.once('exit', () => running.delete(thread));
}

/** Ends a thread, if there is one; waits for it for {@link END_MS} at most. */
export async function endThread(thread: Worker | undefined): Promise<void> {
  if (thread === undefined) {
    return;
  }
  const { promise, resolve } = Promise.withResolvers<void>();
  const patience = setTimeout(resolve, END_MS);
  void thread.terminate().then(() => resolve());
  await promise;
  clearTimeout(patience);
}

/**
 * Ends all threads, and the process with them where one does not end: Node would wait for it. For the end of a command that has
 * stopped all else.
 */
export async function endThreads(): Promise<void> {
  await Promise.all(Array.from(running, endThread));
  if (running.size > 0) {
    process.kill(process.pid, 'SIGKILL');
    // The first process of a container gets no signal of its own.
    process.abort();
  }
}
