/** The clock of the runtime; tests replace it. */
export interface Clock {
  /** Milliseconds since an arbitrary start; never goes back. */
  now(): number;
  /** Milliseconds since 1970, for timestamps that people or other processes read. */
  date(): number;
  /** Calls `callback` once after `ms`. Returns a function that cancels it. */
  after(ms: number, callback: () => void): () => void;
}

/** The longest delay of setTimeout, 2^31 - 1 ms (24.8 days); a longer one fires at once. */
const LONGEST_TIMEOUT_MS = 0x7fff_ffff;

/** The machine's clock. Its timers do not keep the process alive. */
export const SYSTEM_CLOCK: Clock = {
  now: () => performance.now(),
  date: () => Date.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, Math.min(Math.max(ms, 0), LONGEST_TIMEOUT_MS));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** Resolves after `ms`, or as soon as `signal` is aborted. Never rejects. */
export function pause(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) {
    return Promise.resolve();
  }
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const cancel = clock.after(ms, end);
    signal?.addEventListener('abort', end);
  });
}
