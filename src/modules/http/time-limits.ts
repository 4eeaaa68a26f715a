import { ModuleError } from '../reference/errors.ts';

/** Time for the TCP connection: a lost SYN is sent again after 1, 3 and 7 seconds. */
const CONNECT_TIMEOUT_MS = 10_000;
/** Time without a byte: longer than a server needs to find a file. */
const IDLE_TIMEOUT_MS = 20_000;
/** Time for the whole transfer, all of its requests included: 64 MiB at half a megabyte per second. */
export const FETCH_TIMEOUT_MS = 120_000;

/** Time limits in milliseconds. */
export interface FetchTimeouts {
  /** For the TCP connection. Default: `CONNECT_TIMEOUT_MS`. */
  readonly connectMs?: number;
  /** Between two bytes. Default: `IDLE_TIMEOUT_MS`. */
  readonly idleMs?: number;
  /** For the whole transfer. Default: `FETCH_TIMEOUT_MS`. */
  readonly totalMs?: number;
}

/** The timeouts of one transfer. The first that expires aborts `signal` with the error to report. */
export class TimeLimits {
  readonly signal: AbortSignal;
  readonly #controller = new AbortController();
  readonly #shown: string;
  readonly #connectMs: number;
  readonly #idleMs: number;
  #endsAtMs: number;
  #whole: NodeJS.Timeout;
  #current: NodeJS.Timeout | undefined;

  /** @param shown what is transferred, for messages */
  constructor(shown: string, timeouts: FetchTimeouts, signal: AbortSignal | undefined) {
    this.#shown = shown;
    this.#connectMs = timeouts.connectMs ?? CONNECT_TIMEOUT_MS;
    this.#idleMs = timeouts.idleMs ?? IDLE_TIMEOUT_MS;
    this.signal = signal === undefined ? this.#controller.signal : AbortSignal.any([signal, this.#controller.signal]);
    const totalMs = timeouts.totalMs ?? FETCH_TIMEOUT_MS;
    this.#endsAtMs = performance.now() + totalMs;
    this.#whole = this.#after(totalMs, 'the whole transfer');
  }

  /** Time until the whole transfer must be over. Milliseconds. */
  get remainingMs(): number {
    return this.#endsAtMs - performance.now();
  }

  connecting(): void {
    clearTimeout(this.#current);
    this.#current = this.#after(this.#connectMs, 'the connection');
  }

  connected(): void {
    clearTimeout(this.#current);
    this.#current = this.#after(this.#idleMs, 'the next byte');
  }

  /** Restarts the idle timeout. */
  received(): void {
    this.#current?.refresh();
  }

  /** Between two requests, only the limit of the whole transfer counts. */
  idle(): void {
    clearTimeout(this.#current);
  }

  /** Runs work whose time is not that of the server, such as waiting for memory: no limit counts. */
  async paused(work: () => Promise<void>): Promise<void> {
    const { remainingMs } = this;
    clearTimeout(this.#whole);
    clearTimeout(this.#current);
    await work();
    this.#endsAtMs = performance.now() + remainingMs;
    this.#whole = this.#after(remainingMs, 'the whole transfer');
    this.connected();
  }

  /** Stops the timers, and closes connections that are still open. */
  end(): void {
    clearTimeout(this.#whole);
    clearTimeout(this.#current);
    this.#controller.abort();
  }

  #after(ms: number, what: string): NodeJS.Timeout {
    return setTimeout(() => {
      const message = `${this.#shown} took too long: expected ${what} within ${ms} ms. Check that the server is up and reachable from here`;
      this.#controller.abort(new ModuleError('source-timeout', message));
    }, ms);
  }
}
