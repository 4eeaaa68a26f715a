// The main thread's side of the capability thread: starts it, connects other threads to it, replaces it when it ends.
import { MessageChannel, Worker } from 'node:worker_threads';
import type { CapabilityConnection } from './capability-connection.ts';
import type { LogMessage } from './evaluation-protocol.ts';

/** To the capability thread: one more thread that asks. */
export interface ConnectMessage {
  readonly connection: CapabilityConnection;
}

/** Answers host capabilities in a thread of its own, so that slow networks hold neither reviews nor the main thread. */
export class CapabilityService {
  readonly #log: (entry: LogMessage) => void;
  #worker: Worker | undefined;
  #stopped = false;

  constructor(log: (entry: LogMessage) => void) {
    this.#log = log;
  }

  /** A new connection for one thread. The capability thread starts with the first. */
  connect(): CapabilityConnection {
    const { port1, port2 } = new MessageChannel();
    const answered = new SharedArrayBuffer(4);
    this.#worker ??= this.#spawn();
    const message: ConnectMessage = { connection: { port: port1, answered } };
    this.#worker.postMessage(message, [port1]);
    return { port: port2, answered };
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#worker?.terminate();
  }

  #spawn(): Worker {
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const worker = new Worker(new URL(`./capability-thread.${extension}`, import.meta.url), { env: {} });
    worker.unref();
    worker.on('error', (error) => {
      this.#log({ level: 'error', message: 'host capabilities failed', fields: { error: error.message } });
    });
    worker.on('exit', () => {
      if (!this.#stopped && this.#worker === worker) {
        // Threads that are connected to it get timeouts until they are replaced; new connections get a new thread.
        this.#worker = undefined;
      }
    });
    return worker;
  }
}
