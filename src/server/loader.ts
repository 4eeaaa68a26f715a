// The main thread's side of the loader: one thread that parses policies files, fetches and compiles modules, and lets
// policies check their settings. Guests run in it, so it is watched like a worker and replaced when one does not end.
import { Worker } from 'node:worker_threads';
import type { SourcesConfig } from '../modules/index.ts';
import type { CapabilityConnection } from './capability-connection.ts';
import type { CompiledPolicyModule } from './compiled-module.ts';
import type { LogMessage } from './evaluation-protocol.ts';
import { WorkerActivity } from './evaluation-protocol.ts';
import { ServerError } from './errors.ts';
import type { Declared, LoadOutcome, LoadRequest } from './policy-registry.ts';

/** How often the loader is looked at. Milliseconds. */
const WATCHDOG_INTERVAL_MS = 50;

/** Space for new objects in the loader: it works rarely, and what it leaves behind should not stay. */
const YOUNG_HEAP_MB = 8;

/** Threads that may end one after the other without an answer before what they were to load fails. */
const MAX_DEATHS = 3;

/** How long the loader lives with nothing to do. A change after that waits some 100 ms for a new one. Milliseconds. */
export const IDLE_MS = 10_000;

/** Given to the loader thread when it starts. */
export interface LoaderStart {
  readonly activity: SharedArrayBuffer;
  /** Where host capabilities are answered. */
  readonly capabilities: CapabilityConnection;
  /** Modules that are compiled already. */
  readonly modules: readonly CompiledPolicyModule[];
  /** Folder of the module cache. */
  readonly cacheDir: string;
  /** Folder that `file://./…` references are relative to. */
  readonly baseDir: string;
  readonly sources: SourcesConfig | undefined;
  /** Time for one download; undefined means the module store's default. */
  readonly fetchTimeoutMs: number | undefined;
  readonly defaultTimeoutSeconds: number;
  readonly memoryLimitBytes: number | undefined;
}

/** What a {@link Loader} needs. */
export interface LoaderOptions extends Omit<LoaderStart, 'activity' | 'capabilities' | 'modules'> {
  /** A connection to whatever answers host capabilities. */
  readonly connectCapabilities: () => CapabilityConnection;
  /** The modules that serve: a thread that starts later need not fetch and compile them anew. */
  readonly modules: () => readonly CompiledPolicyModule[];
}

/** To the loader thread. */
export type ToLoader =
  | { readonly type: 'parse'; readonly seq: number; readonly text: string; readonly fileName: string }
  | { readonly type: 'load'; readonly jobs: readonly (readonly [seq: number, request: LoadRequest])[] }
  /** Digests that serve: other compiled modules need not be kept. */
  | { readonly type: 'keep'; readonly digests: readonly string[] };

/** From the loader thread. */
export type FromLoader =
  | { readonly type: 'parsed'; readonly seq: number; readonly declared: Declared }
  | { readonly type: 'unparsable'; readonly seq: number; readonly message: string }
  | { readonly type: 'loaded'; readonly outcomes: readonly (readonly [seq: number, outcome: LoadOutcome])[] }
  | { readonly type: 'log'; readonly entry: LogMessage };

interface PendingParse {
  readonly text: string;
  readonly fileName: string;
  readonly resolve: (declared: Declared) => void;
  readonly reject: (error: Error) => void;
}

interface PendingLoad {
  readonly request: LoadRequest;
  readonly batch: Batch;
}

interface Batch {
  readonly done: (outcomes: ReadonlyMap<LoadRequest, LoadOutcome>) => void;
}

/** Loads policies in a thread of its own. */
export class Loader {
  readonly #start: LoaderOptions;
  readonly #log: (entry: LogMessage) => void;
  readonly #parses = new Map<number, PendingParse>();
  readonly #loads = new Map<number, PendingLoad>();
  #worker: Worker | undefined;
  #activity = new WorkerActivity();
  #seq = 0;
  /** Threads that ended one after the other without an answer and without a culprit. */
  #deaths = 0;
  #idle: NodeJS.Timeout | undefined;
  readonly #watchdog: NodeJS.Timeout;
  #stopped = false;

  constructor(start: LoaderOptions, log: (entry: LogMessage) => void) {
    this.#start = start;
    this.#log = log;
    this.#watchdog = setInterval(() => this.#watch(), WATCHDOG_INTERVAL_MS);
    this.#watchdog.unref();
  }

  /**
   * Parses the text of a policies file.
   * @throws Error with position and excerpt when it is not YAML, or not a policies file at all.
   */
  parse(text: string, fileName: string): Promise<Declared> {
    this.#seq += 1;
    const seq = this.#seq;
    const { promise, resolve, reject } = Promise.withResolvers<Declared>();
    this.#parses.set(seq, { text, fileName, resolve, reject });
    this.#send({ type: 'parse', seq, text, fileName });
    return promise;
  }

  /** Loads policies; `done` is called once or more, each time with the outcomes that are there. */
  load(requests: readonly LoadRequest[], done: Batch['done']): void {
    const batch: Batch = { done };
    const jobs = requests.map((request): [number, LoadRequest] => {
      this.#seq += 1;
      this.#loads.set(this.#seq, { request, batch });
      return [this.#seq, request];
    });
    this.#send({ type: 'load', jobs });
  }

  /** Tells which modules serve, so that the thread forgets the others. */
  keep(digests: readonly string[]): void {
    this.#worker?.postMessage({ type: 'keep', digests } satisfies ToLoader);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#watchdog);
    clearTimeout(this.#idle);
    await this.#worker?.terminate();
  }

  /** Sends to the thread, which starts when there is none. */
  #send(message: ToLoader): void {
    clearTimeout(this.#idle);
    this.#worker ??= this.#spawn();
    this.#worker.postMessage(message);
  }

  /** Ends the thread once there has been nothing to do for a while: it holds as much memory as a worker. */
  #endWhenIdle(): void {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => {
      if (this.#parses.size === 0 && this.#loads.size === 0) {
        const idle = this.#worker;
        this.#worker = undefined;
        void idle?.terminate();
      }
    }, IDLE_MS);
    this.#idle.unref();
  }

  #spawn(): Worker {
    this.#activity = new WorkerActivity();
    const { connectCapabilities, modules, ...start } = this.#start;
    const capabilities = connectCapabilities();
    const workerData: LoaderStart = { ...start, activity: this.#activity.buffer, capabilities, modules: modules() };
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const worker = new Worker(new URL(`./loader-thread.${extension}`, import.meta.url), {
      workerData,
      transferList: [capabilities.port],
      env: {},
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_HEAP_MB },
    });
    worker.on('message', (message: FromLoader) => this.#receive(message));
    worker.on('error', (error) =>
      this.#log({ level: 'error', message: 'loader failed', fields: { error: error.message } }),
    );
    worker.on('exit', () => {
      if (worker === this.#worker && !this.#stopped) {
        this.#restart(this.#activity.current()?.seq);
      }
    });
    return worker;
  }

  #receive(message: FromLoader): void {
    this.#deaths = 0;
    switch (message.type) {
      case 'parsed':
        this.#parses.get(message.seq)?.resolve(message.declared);
        this.#parses.delete(message.seq);
        break;
      case 'unparsable':
        this.#parses.get(message.seq)?.reject(new ServerError('policies-unreadable', message.message));
        this.#parses.delete(message.seq);
        break;
      case 'loaded':
        this.#loaded(message.outcomes);
        break;
      case 'log':
        this.#log(message.entry);
        break;
      default:
        message satisfies never;
    }
    this.#endWhenIdle();
  }

  #loaded(outcomes: readonly (readonly [number, LoadOutcome])[]): void {
    const batches = new Map<Batch, Map<LoadRequest, LoadOutcome>>();
    for (const [seq, outcome] of outcomes) {
      const pending = this.#loads.get(seq);
      if (pending === undefined) {
        continue;
      }
      this.#loads.delete(seq);
      const together = batches.get(pending.batch) ?? new Map<LoadRequest, LoadOutcome>();
      batches.set(pending.batch, together.set(pending.request, outcome));
    }
    for (const [batch, together] of batches) {
      batch.done(together);
    }
  }

  #watch(): void {
    const overdue = this.#activity.overdue();
    if (overdue !== undefined) {
      this.#restart(overdue.seq);
    }
  }

  /** Replaces the thread; the culprit's load fails, all others are begun anew. */
  #restart(culprit: number | undefined): void {
    // A culprit is dealt with below; many may follow one another.
    this.#deaths += culprit === undefined ? 1 : 0;
    const ended = this.#worker;
    this.#worker = undefined;
    void ended?.terminate();
    if (culprit !== undefined) {
      const message = 'the policy did not end while its settings were checked; its module may loop for ever';
      this.#loaded([[culprit, { ok: false, reason: 'SettingsCheckFailed', message, transient: false }]]);
    }
    for (const [seq, { text, fileName, reject }] of this.#parses) {
      if (this.#deaths > MAX_DEATHS) {
        // A file that ended the thread again and again would end the next one too.
        this.#parses.delete(seq);
        reject(
          new ServerError(
            'thread-ended',
            `${fileName} could not be parsed: the loader ended; the file may be far too large`,
          ),
        );
      } else {
        this.#send({ type: 'parse', seq, text, fileName });
      }
    }
    if (this.#deaths > MAX_DEATHS) {
      const message = 'the loader ended again and again; is the process out of memory?';
      const outcome: LoadOutcome = { ok: false, reason: 'SettingsCheckFailed', message, transient: true };
      this.#loaded([...this.#loads.keys()].map((seq) => [seq, outcome]));
    } else if (this.#loads.size > 0) {
      this.#send({ type: 'load', jobs: [...this.#loads].map(([seq, { request }]) => [seq, request] as const) });
    }
  }
}
