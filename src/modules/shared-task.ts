/** A running task and its callers. */
interface Flight<T, P> {
  readonly result: Promise<T>;
  readonly controller: AbortController;
  readonly listeners: Set<(progress: P) => void>;
  waiting: number;
}

interface CallOptions<P> {
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: P) => void;
}

/**
 * Runs one task per key at a time; concurrent callers share its result (Go's `singleflight`). A caller whose signal is aborted
 * stops waiting, and the task is aborted when the last caller has stopped.
 */
export class SharedTasks<T, P> {
  readonly #flights = new Map<string, Flight<T, P>>();

  async run(
    key: string,
    work: (signal: AbortSignal, report: (progress: P) => void) => Promise<T>,
    { signal, onProgress }: CallOptions<P> = {},
  ): Promise<T> {
    signal?.throwIfAborted();
    const flight = this.#flights.get(key) ?? this.#start(key, work);
    flight.waiting++;
    if (onProgress !== undefined) {
      flight.listeners.add(onProgress);
    }
    try {
      return await untilAborted(flight.result, signal);
    } finally {
      if (onProgress !== undefined) {
        flight.listeners.delete(onProgress);
      }
      flight.waiting--;
      if (flight.waiting === 0) {
        this.#end(key, flight);
      }
    }
  }

  #start(key: string, work: (signal: AbortSignal, report: (progress: P) => void) => Promise<T>): Flight<T, P> {
    const controller = new AbortController();
    const listeners = new Set<(progress: P) => void>();
    const result = work(controller.signal, (progress) => {
      for (const listener of listeners) {
        listener(progress);
      }
    });
    // Without callers, a rejection would be unhandled.
    result.catch(() => undefined);
    const flight: Flight<T, P> = { result, controller, listeners, waiting: 0 };
    this.#flights.set(key, flight);
    return flight;
  }

  #end(key: string, flight: Flight<T, P>): void {
    if (this.#flights.get(key) === flight) {
      this.#flights.delete(key);
    }
    flight.controller.abort();
  }
}

async function untilAborted<T>(result: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) {
    return await result;
  }
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason as Error);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([result, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
