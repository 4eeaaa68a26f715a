import type { EvaluationHost } from '../../evaluation/index.ts';

/** How long a host is kept without work: its threads take a second to start, and memory while they are there. Milliseconds. */
const IDLE_MS = 10_000;

type Host = Pick<EvaluationHost, 'serve' | 'evaluate' | 'except'> & AsyncDisposable;

/** A host of evaluations that exists while there is work for it. One user at a time. */
export class IdleHost implements AsyncDisposable {
  readonly #start: () => Promise<Host>;
  #host: Promise<Host> | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** @param start makes a host, and starts it */
  constructor(start: () => Promise<Host>) {
    this.#start = start;
  }

  async use<T>(work: (host: Host) => Promise<T>): Promise<T> {
    clearTimeout(this.#timer);
    this.#host ??= this.#start();
    try {
      return await work(await this.#host);
    } catch (error) {
      // Evaluations of an interrupted use may still be under way.
      await this[Symbol.asyncDispose]();
      throw error;
    } finally {
      this.#timer = setTimeout(() => void this[Symbol.asyncDispose](), IDLE_MS).unref();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer);
    const host = this.#host;
    this.#host = undefined;
    await (await host?.catch(() => undefined))?.[Symbol.asyncDispose]();
  }
}
