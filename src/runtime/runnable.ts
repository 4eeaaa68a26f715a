/** Something that runs until it is told to stop. */
export interface Runnable {
  /** For logs, metrics and messages. */
  readonly name: string;
  /** Resolves when it has ended because of `signal`, or because there is nothing left to do; rejects when it failed. */
  start(signal: AbortSignal): Promise<void>;
  /** Resolves when it does its work. Absent: as soon as it was started. */
  readonly ready?: Promise<void>;
}

/** Resolves when `signal` is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  return signal.aborted
    ? Promise.resolve()
    : new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
