/** A long-running part of a process. */
export interface Runnable {
  /** For logs, metrics and messages. */
  readonly name: string;
  /** Resolves when it has ended, by `signal` or because its work is done. Rejects when it failed. */
  start(signal: AbortSignal): Promise<void>;
  /** Resolves when it is ready. Absent: ready once it is started. */
  readonly ready?: Promise<void>;
}

/** Resolves when `signal` is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  return signal.aborted
    ? Promise.resolve()
    : new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
