// One loader thread and what it has to do. Guests run in it, so it is watched like a worker and replaced when one does
// not end; what it had to do besides is begun anew.
import { Worker } from 'node:worker_threads';
import { modulesOf } from '../../engine/definition/index.ts';
import type { PeerSource, SourcesConfig } from '../../modules/index.ts';
import type { CapabilityConnection } from '../capabilities/capability-connection.ts';
import type { CompiledPolicyModule } from './compiled-module.ts';
import type { LogEntry } from '../../log/index.ts';
import { WorkerActivity } from '../evaluation-protocol.ts';
import { EvaluationError } from '../errors.ts';
import {
  type LoadOutcome,
  type LoadRequest,
  type PolicyEntry,
  type ReadEntry,
  type Stage,
  STAGES,
} from './load-request.ts';
import { threadEnvironment } from '../thread-environment.ts';

/** How often the thread is looked at. Milliseconds. */
const WATCHDOG_INTERVAL_MS = 50;

/** Space for new objects in the thread: it works rarely, and what it leaves behind should not stay. */
const YOUNG_HEAP_MB = 8;

/** Threads that may end one after the other without an answer before what they were to do fails. */
export const MAX_DEATHS = 3;

/** How long the thread lives with nothing to do. A change after that waits some 100 ms for a new one. Milliseconds. */
export const IDLE_MS = 10_000;

/**
 * How much time policies get. `quick`: what any ordinary one needs, so that the others do not wait for one that takes
 * longer; that one is put off. `patient`: all the time that it has by its definition.
 */
export type Patience = 'quick' | 'patient';

/** Given to a loader thread when it starts. */
export interface LoaderStart {
  readonly activity: SharedArrayBuffer;
  readonly patience: Patience;
  /** Where host capabilities are answered. */
  readonly capabilities: CapabilityConnection;
  /** Modules that are compiled already. */
  readonly modules: readonly CompiledPolicyModule[];
  /** Folder of the module cache. */
  readonly cacheDir: string;
  /** Folder that `file://./…` references are relative to; undefined: there are none. */
  readonly baseDir: string | undefined;
  readonly sources: SourcesConfig | undefined;
  /** Time for one download; undefined means the module store's default. */
  readonly fetchTimeoutMs: number | undefined;
  readonly defaultTimeoutSeconds: number;
  readonly memoryLimitBytes: number | undefined;
  /** Folder that modules of tenants may be in; undefined: none. */
  readonly tenantFolder?: string | undefined;
  /** How other replicas are asked for modules by digest; undefined: there are none. */
  readonly peers?: PeerAccess | undefined;
  /** `host:port` of other replicas. */
  readonly peerAddresses: readonly string[];
}

/** Everything about other replicas but where they are now. */
export type PeerAccess = Omit<PeerSource, 'addresses'>;

/** What loader threads need. */
export interface LoaderOptions extends Omit<
  LoaderStart,
  'activity' | 'patience' | 'capabilities' | 'modules' | 'peers' | 'peerAddresses'
> {
  /** A connection to whatever answers host capabilities. */
  readonly connectCapabilities: () => CapabilityConnection;
  /** The modules that serve: a thread that starts later need not fetch and compile them anew. */
  readonly modules: () => readonly CompiledPolicyModule[];
  /** How other replicas are asked for modules, once this process is one. Default: there are none. */
  readonly peers?: () => PeerAccess | undefined;
}

/** A load and its number, which is told with what becomes of it. */
export type LoadJob = readonly [seq: number, request: LoadRequest];

/** What became of loads, by number. */
export type Loaded = readonly (readonly [seq: number, outcome: LoadOutcome])[];

/** To the thread. */
export type ToLoader =
  | { readonly type: 'parse'; readonly seq: number; readonly text: string; readonly fileName: string }
  | { readonly type: 'read'; readonly seq: number; readonly entries: readonly PolicyEntry[] }
  | { readonly type: 'load'; readonly jobs: readonly LoadJob[] }
  /** Digests that serve: other compiled modules need not be kept. */
  | { readonly type: 'keep'; readonly digests: readonly string[] }
  | { readonly type: 'peers'; readonly addresses: readonly string[] };

/** From the thread. */
export type FromLoader =
  | { readonly type: 'read'; readonly seq: number; readonly entries: readonly ReadEntry[] }
  | { readonly type: 'unparsable'; readonly seq: number; readonly message: string }
  | { readonly type: 'loaded'; readonly outcomes: Loaded }
  /** Loads whose policies need more than a quick thread gives them. */
  | { readonly type: 'unfinished'; readonly seqs: readonly number[] }
  | { readonly type: 'log'; readonly entry: LogEntry };

/** What a lane tells. */
export interface LaneListener {
  loaded(outcomes: Loaded): void;
  /** A policy did not come to its end in the time that this lane has for it; undefined: the thread put it off itself. */
  unfinished(job: LoadJob, stage: Stage | undefined): void;
  log(entry: LogEntry): void;
}

interface PendingRead {
  readonly message: ToLoader;
  /** What is read, for messages. */
  readonly name: string;
  readonly resolve: (entries: readonly ReadEntry[]) => void;
  readonly reject: (error: Error) => void;
}

/** One loader thread, which starts when there is something to do. */
export class LoaderLane {
  readonly #patience: Patience;
  readonly #start: LoaderOptions;
  readonly #listener: LaneListener;
  readonly #reads = new Map<number, PendingRead>();
  readonly #loads = new Map<number, LoadRequest>();
  #worker: Worker | undefined;
  #peerAddresses: readonly string[] = [];
  #activity = new WorkerActivity();
  /** Threads that ended one after the other without an answer and without a culprit. */
  #deaths = 0;
  #idle: NodeJS.Timeout | undefined;
  readonly #watchdog: NodeJS.Timeout;
  #stopped = false;

  constructor(patience: Patience, start: LoaderOptions, listener: LaneListener) {
    this.#patience = patience;
    this.#start = start;
    this.#listener = listener;
    this.#watchdog = setInterval(() => this.#watch(), WATCHDOG_INTERVAL_MS);
    this.#watchdog.unref();
  }

  /** @throws EvaluationError 'policies-unreadable', 'thread-ended' */
  parse(seq: number, text: string, fileName: string): Promise<readonly ReadEntry[]> {
    return this.#read(seq, fileName, { type: 'parse', seq, text, fileName });
  }

  /** @throws EvaluationError 'thread-ended'; RangeError for what is nested too deeply to be sent */
  read(seq: number, entries: readonly PolicyEntry[]): Promise<readonly ReadEntry[]> {
    return this.#read(seq, 'the policies', { type: 'read', seq, entries });
  }

  async #read(seq: number, name: string, message: ToLoader): Promise<readonly ReadEntry[]> {
    // What cannot be sent is not waited for either.
    this.#send(message);
    const { promise, resolve, reject } = Promise.withResolvers<readonly ReadEntry[]>();
    this.#reads.set(seq, { message, name, resolve, reject });
    return await promise;
  }

  load(jobs: readonly LoadJob[]): void {
    for (const [seq, request] of jobs) {
      this.#loads.set(seq, request);
    }
    this.#send({ type: 'load', jobs });
  }

  /** Tells which modules serve, so that the thread forgets the others. */
  keep(digests: readonly string[]): void {
    this.#worker?.postMessage({ type: 'keep', digests } satisfies ToLoader);
  }

  /** Tells where other replicas are now. */
  peers(addresses: readonly string[]): void {
    this.#peerAddresses = addresses;
    this.#worker?.postMessage({ type: 'peers', addresses } satisfies ToLoader);
  }

  /** Replaces the thread, if there is one: what it was started with is no longer good. */
  renew(): void {
    this.#replace();
    this.#beginAnew();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#watchdog);
    clearTimeout(this.#idle);
    await this.#worker?.terminate();
  }

  /** Sends to the thread, which starts when there is none. */
  #send(message: ToLoader): void {
    if (this.#stopped) {
      return;
    }
    clearTimeout(this.#idle);
    this.#worker ??= this.#spawn();
    this.#worker.postMessage(message);
  }

  /** Ends the thread once there has been nothing to do for a while: it holds as much memory as a worker. */
  #endWhenIdle(): void {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => {
      if (this.#reads.size === 0 && this.#loads.size === 0) {
        this.#replace();
      }
    }, IDLE_MS);
    this.#idle.unref();
  }

  #spawn(): Worker {
    this.#activity = new WorkerActivity();
    const { connectCapabilities, modules, peers, ...start } = this.#start;
    const capabilities = connectCapabilities();
    const workerData: LoaderStart = {
      ...start,
      activity: this.#activity.buffer,
      patience: this.#patience,
      capabilities,
      modules: modules(),
      peers: peers?.(),
      peerAddresses: this.#peerAddresses,
    };
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const worker = new Worker(new URL(`./loader-thread.${extension}`, import.meta.url), {
      name: `${this.#patience} loader`,
      workerData,
      transferList: [capabilities.port],
      env: threadEnvironment(),
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_HEAP_MB },
    });
    // What a thread said before it was replaced may arrive afterwards, and is as good; only the first answer counts.
    worker.on('message', (message: FromLoader) => this.#receive(message));
    worker.on('error', (error) =>
      this.#listener.log({ level: 'error', message: 'loader failed', fields: { error: error.message } }),
    );
    worker.on('exit', () => {
      if (worker === this.#worker && !this.#stopped) {
        this.#restart(this.#activity.current());
      }
    });
    return worker;
  }

  #receive(message: FromLoader): void {
    if (message.type !== 'log') {
      this.#deaths = 0;
    }
    switch (message.type) {
      case 'read':
        this.#reads.get(message.seq)?.resolve(message.entries);
        this.#reads.delete(message.seq);
        break;
      case 'unparsable':
        this.#reads.get(message.seq)?.reject(new EvaluationError('policies-unreadable', message.message));
        this.#reads.delete(message.seq);
        break;
      case 'loaded':
        this.#loaded(message.outcomes);
        break;
      case 'unfinished':
        for (const seq of message.seqs) {
          this.#unfinished(seq, undefined);
        }
        break;
      case 'log':
        this.#listener.log(message.entry);
        break;
      default:
        message satisfies never;
    }
    this.#endWhenIdle();
  }

  #loaded(outcomes: Loaded): void {
    this.#listener.loaded(outcomes.filter(([seq]) => this.#loads.delete(seq)));
  }

  #unfinished(seq: number, stage: Stage | undefined): void {
    const request = this.#loads.get(seq);
    if (request !== undefined && this.#loads.delete(seq)) {
      this.#listener.unfinished([seq, request], stage);
    }
  }

  #watch(): void {
    const overdue = this.#activity.overdue();
    if (overdue !== undefined && this.#worker !== undefined) {
      this.#restart(overdue);
    }
  }

  /** The thread does not end, or ended: its culprit is told, everything else is begun anew. */
  #restart(culprit: { readonly seq: number; readonly member: number } | undefined): void {
    // A culprit is dealt with below; many may follow one another.
    this.#deaths += culprit === undefined ? 1 : 0;
    this.#replace();
    if (culprit !== undefined) {
      const stage = STAGES[culprit.member] ?? 'check';
      for (const seq of this.#alike(culprit.seq, stage)) {
        this.#unfinished(seq, stage);
      }
    }
    if (this.#deaths > MAX_DEATHS) {
      this.#giveUp();
    } else {
      this.#beginAnew();
    }
  }

  /** Ends the thread; the next message starts another one. */
  #replace(): void {
    const ended = this.#worker;
    this.#worker = undefined;
    void ended?.terminate();
  }

  #beginAnew(): void {
    for (const { message } of this.#reads.values()) {
      this.#send(message);
    }
    if (this.#loads.size > 0) {
      this.#send({ type: 'load', jobs: [...this.#loads] });
    }
  }

  /** The culprit; and where its module did not get to checking settings, all that have no other module than that one. */
  #alike(culprit: number, stage: Stage): number[] {
    const request = this.#loads.get(culprit);
    const [module, ...others] = request === undefined ? [] : modulesOf(request.definition);
    if (stage === 'check' || module === undefined || others.length > 0) {
      return [culprit];
    }
    const isAlike = ({ definition, digests, from, isForTenant }: LoadRequest): boolean => {
      const modules = modulesOf(definition);
      return (
        modules.length === 1 &&
        modules[0] === module &&
        digests?.[module] === request?.digests?.[module] &&
        from === request?.from &&
        isForTenant === request?.isForTenant
      );
    };
    return [...this.#loads].filter(([, other]) => isAlike(other)).map(([seq]) => seq);
  }

  /** What ended the thread again and again would end the next one too. */
  #giveUp(): void {
    this.#deaths = 0;
    for (const [seq, { name, reject }] of this.#reads) {
      this.#reads.delete(seq);
      reject(
        new EvaluationError(
          'thread-ended',
          `${name} could not be parsed: the loader ended; the file may be far too large`,
        ),
      );
    }
    const message = 'the loader ended again and again; is the process out of memory?';
    const outcome: LoadOutcome = { ok: false, reason: 'SettingsCheckFailed', message, transient: true };
    this.#loaded([...this.#loads.keys()].map((seq) => [seq, outcome]));
  }
}
