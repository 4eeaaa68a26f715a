// The main thread's side of the capability thread: starts it on the first request, and connects other threads to it.
import type { ContextAwareResource } from '../../resources/index.ts';
import { MessageChannel, type MessagePort, type Worker } from 'node:worker_threads';
import type { CapabilityConnection, CapabilityRequest } from './capability-connection.ts';
import type { ClusterSource } from '../cluster-objects/cluster-source.ts';
import { KindRevisions } from '../cluster-objects/kind-revisions.ts';
import type { LogEntry } from '../../log/index.ts';
import type { TrustRoot } from '../../modules/index.ts';
import type { SourcesConfig } from '../../modules/sources/index.ts';
import { endThread, startThread } from '../../threads/index.ts';

/** Given to the capability thread when it starts. */
export interface CapabilityStart {
  /** The cluster that context-aware policies read. Absent: none. */
  readonly cluster?: ClusterSource;
  /** How to reach registries. Default: that of a server without `sources.yml`. */
  readonly sources?: SourcesConfig | undefined;
  /** For keyless signatures of images. Default: none. */
  readonly trustRoot?: TrustRoot | undefined;
  /** Memory of {@link KindRevisions}. */
  readonly revisions: SharedArrayBuffer;
}

/** To the capability thread. */
export type ToCapabilityThread =
  /** A new connection, and the first request on it. */
  | { readonly type: 'connect'; readonly connection: CapabilityConnection; readonly first: CapabilityRequest }
  /** The kinds that policies declare: these are cached, and no others. */
  | { readonly type: 'declare'; readonly kinds: readonly ContextAwareResource[] };

/** From the capability thread. */
export interface FromCapabilityThread {
  readonly type: 'log';
  readonly entry: LogEntry;
}

/** Delay before a thread that ended starts again without a request. Milliseconds. */
const RESTART_MS = 5_000;

/** Answers host capabilities in a separate thread, so that slow networks delay neither other reviews nor the main thread. */
export class CapabilityService {
  readonly #log: (entry: LogEntry) => void;
  readonly #onEnd: () => void;
  readonly #start: CapabilityStart;
  #kinds: readonly ContextAwareResource[] = [];
  #worker: Worker | undefined;
  #stopped = false;

  /** @param onEnd called when the thread ended by itself: all connections must be replaced */
  constructor(
    log: (entry: LogEntry) => void,
    onEnd: () => void,
    { cluster, sources, trustRoot }: Omit<CapabilityStart, 'revisions'> = {},
  ) {
    this.#log = log;
    this.#onEnd = onEnd;
    this.#start = {
      revisions: new KindRevisions().buffer,
      sources,
      trustRoot,
      ...(cluster === undefined ? {} : { cluster }),
    };
  }

  /** Sets the kinds that policies may read. The first one starts the thread. Does nothing without a cluster. */
  declare(kinds: readonly ContextAwareResource[]): void {
    this.#kinds = kinds;
    if (this.#start.cluster === undefined || this.#stopped || (kinds.length === 0 && this.#worker === undefined)) {
      return;
    }
    if (this.#worker === undefined) {
      // #spawn sends the kinds.
      this.#worker = this.#spawn();
    } else {
      this.#send({ type: 'declare', kinds });
    }
  }

  /** A connection for one thread. The capability thread starts with the first request: most servers never need it. */
  connect(): CapabilityConnection {
    const { port1, port2 } = new MessageChannel();
    const answered = new SharedArrayBuffer(4);
    const { revisions } = this.#start;
    this.#awaitFirstRequest(port1, { answered, revisions });
    return { port: port2, answered, revisions };
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await endThread(this.#worker);
  }

  #awaitFirstRequest(port: MessagePort, memory: Omit<CapabilityConnection, 'port'>): void {
    port.once('message', (first: CapabilityRequest) => {
      if (this.#stopped) {
        return;
      }
      this.#worker ??= this.#spawn();
      this.#send({ type: 'connect', connection: { port, ...memory }, first }, [port]);
    });
    port.unref();
  }

  #send(message: ToCapabilityThread, transfer: readonly MessagePort[] = []): void {
    this.#worker?.postMessage(message, transfer);
  }

  #spawn(): Worker {
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const worker = startThread(new URL(`./capability-thread.${extension}`, import.meta.url), {
      name: 'host capabilities',
      workerData: this.#start,
    });
    worker.unref();
    worker.on('error', (error) => {
      this.#log({ level: 'error', message: 'host capabilities failed', fields: { error: error.message } });
    });
    worker.on('message', ({ entry }: FromCapabilityThread) => this.#log(entry));
    worker.on('exit', () => {
      if (!this.#stopped) {
        this.#worker = undefined;
        this.#onEnd();
        // A request starts the next thread at once. Declared kinds do later, in case that they ended it.
        setTimeout(() => this.declare(this.#kinds), RESTART_MS).unref();
      }
    });
    if (this.#kinds.length > 0) {
      worker.postMessage({ type: 'declare', kinds: this.#kinds } satisfies ToCapabilityThread);
    }
    return worker;
  }
}
