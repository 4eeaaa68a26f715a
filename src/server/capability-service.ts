// The main thread's side of the capability thread: starts it with the first question, and connects other threads to it.
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import type { CapabilityConnection, CapabilityQuestion } from './capability-connection.ts';
import type { LogMessage } from './evaluation-protocol.ts';

/** To the capability thread: one more thread that asks, and its first question. */
export interface ConnectMessage {
  readonly connection: CapabilityConnection;
  readonly first: CapabilityQuestion;
}

/** Answers host capabilities in a thread of its own, so that slow networks hold neither reviews nor the main thread. */
export class CapabilityService {
  readonly #log: (entry: LogMessage) => void;
  readonly #onEnd: () => void;
  #worker: Worker | undefined;
  #stopped = false;

  /** @param onEnd the thread ended on its own: whoever holds a connection needs a new one. */
  constructor(log: (entry: LogMessage) => void, onEnd: () => void) {
    this.#log = log;
    this.#onEnd = onEnd;
  }

  /** A connection for one thread. It costs no thread until its first question: most servers are never asked one. */
  connect(): CapabilityConnection {
    const { port1, port2 } = new MessageChannel();
    const answered = new SharedArrayBuffer(4);
    this.#awaitQuestion(port1, answered);
    return { port: port2, answered };
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#worker?.terminate();
  }

  #awaitQuestion(port: MessagePort, answered: SharedArrayBuffer): void {
    port.once('message', (first: CapabilityQuestion) => {
      if (this.#stopped) {
        return;
      }
      this.#worker ??= this.#spawn();
      const message: ConnectMessage = { connection: { port, answered }, first };
      this.#worker.postMessage(message, [port]);
    });
    port.unref();
  }

  #spawn(): Worker {
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const worker = new Worker(new URL(`./capability-thread.${extension}`, import.meta.url), {
      name: 'host capabilities',
      env: {},
    });
    worker.unref();
    worker.on('error', (error) => {
      this.#log({ level: 'error', message: 'host capabilities failed', fields: { error: error.message } });
    });
    worker.on('exit', () => {
      if (!this.#stopped) {
        this.#worker = undefined;
        this.#onEnd();
      }
    });
    return worker;
  }
}
