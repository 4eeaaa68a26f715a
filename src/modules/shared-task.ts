/** Work that several callers may wait for at once. */
interface Flight<T, P> {
  readonly result: Promise<T>;
  readonly controller: AbortController;
  readonly listeners: Set<(progress: P) => void>;
  waiting: number;
}

/** How one caller takes part. */
interface Participation<P> {
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: P) => void;
}

/**
 * Runs work at most once at a time per key: who asks while it runs gets the same result. A caller whose signal is aborted
 * stops waiting; when the last one has, the work itself is aborted.
 */
export class SharedTasks<T, P> {
  readonly #flights = new Map<string, Flight<T, P>>();

  async run(
    key: string,
    work: (signal: AbortSignal, report: (progress: P) => void) => Promise<T>,
    { signal, onProgress }: Participation<P> = {},
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
    // When all have gone, nobody is left to see it fail.
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
