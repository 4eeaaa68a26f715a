/** Time as the runtime sees it, so that tests can make it pass. */
export interface Clock {
  /** Milliseconds that only ever grow, from any beginning. */
  now(): number;
  /** Milliseconds since 1970, for what people and other processes read. */
  date(): number;
  /** Calls back once after so many milliseconds. Returns what calls it off. */
  after(ms: number, callback: () => void): () => void;
}

/** setTimeout fires at once for anything longer (2^31 - 1 ms, 24.8 days). */
const LONGEST_TIMEOUT_MS = 0x7fff_ffff;

/** The machine's time. Its timers do not keep a process alive: whatever must, does so itself. */
export const SYSTEM_CLOCK: Clock = {
  now: () => performance.now(),
  date: () => Date.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, Math.min(Math.max(ms, 0), LONGEST_TIMEOUT_MS));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** Resolves after so many milliseconds, or at once when `signal` is aborted. Never rejects. */
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
