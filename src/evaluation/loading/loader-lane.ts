// One loader thread and its pending work. Guests run in the thread, so it is watched like a worker and replaced when a guest
// does not end; its other work starts again.
import { rmSync } from 'node:fs';
import type { Worker } from 'node:worker_threads';
import { modulesOf } from '../../engine/definition/index.ts';
import type { PeerAddresses, PeerSource, Verification } from '../../modules/index.ts';
import type { SourcesConfig } from '../../modules/sources/index.ts';
import type { CapabilityConnection } from '../capabilities/capability-connection.ts';
import { CompileDeadline } from './compile-deadline.ts';
import type { CompiledPolicyModule } from '../compiled-module.ts';
import type { MemoryBudget } from '../memory-budget.ts';
import type { LogEntry } from '../../log/index.ts';
import { monotonicNow, type Running, WorkerActivity } from '../evaluation-protocol.ts';
import { EvaluationError } from '../errors.ts';
import {
  loadOwner,
  type LoadOutcome,
  type LoadRequest,
  type UnreadPolicy,
  type ReadPolicy,
  type Stage,
  STAGES,
} from './load-request.ts';
import { recordPath } from './loading-record.ts';
import type { Quarantined } from './quarantine.ts';
import { endThread, startThread, threadCpuMs } from '../../threads/index.ts';

/** Interval between checks of the thread. Milliseconds. */
const WATCHDOG_INTERVAL_MS = 50;

/** Number of threads in a row that end without an answer before their work fails. */
const MAX_DEATHS = 3;

/** How long an idle thread lives. A change after that waits some 100 ms for a new thread. Milliseconds. */
const IDLE_MS = 10_000;

/**
 * How much time a policy gets. `quick`: enough for ordinary policies; one that takes longer goes to the `patient` thread, so
 * that the others do not wait. `patient`: all the time of its definition.
 */
export type Patience = 'quick' | 'patient';

/** Given to a loader thread when it starts. */
export interface LoaderStart {
  readonly activity: SharedArrayBuffer;
  readonly patience: Patience;
  /** Where host capabilities are answered. */
  readonly capabilities: CapabilityConnection;
  /** Compiled modules. */
  readonly modules: readonly CompiledPolicyModule[];
  /** Folder of the module cache. */
  readonly cacheDir: string;
  /** Folder that `file://./…` references are relative to; undefined: there are none. */
  readonly baseDir: string | undefined;
  readonly sources: SourcesConfig | undefined;
  /** What modules must be signed by; undefined: signatures are not verified. */
  readonly verification?: Verification | undefined;
  /** Largest module of a policy of the cluster; undefined means the module store's default. */
  readonly maxModuleBytes?: number | undefined;
  /** Time for one download; undefined means the module store's default. */
  readonly fetchTimeoutMs: number | undefined;
  readonly defaultTimeoutSeconds: number;
  readonly memoryLimitBytes: number | undefined;
  /** How calls of a module are kept apart, for benches. Default: instances are restored where they can be. */
  readonly isolation?: 'restore' | 'fresh' | undefined;
  /** Memory for instances; undefined: without a limit. */
  readonly memory?: MemoryBudget | undefined;
  /** File that says what is being loaded; undefined: none does. */
  readonly recordPath?: string | undefined;
  /** What may not be loaded now. Default: nothing. */
  readonly quarantined?: readonly Quarantined[];
  /** Folder that modules of tenants may be in; undefined: none. */
  readonly tenantFolder?: string | undefined;
  /** How modules are fetched from other replicas by digest; undefined: there are none. */
  readonly peers?: PeerAccess | undefined;
  readonly peerAddresses: PeerAddresses;
}

/** How other replicas and controllers are reached, without their current addresses. */
export type PeerAccess = Omit<PeerSource, 'addresses'>;

/** Options of loader threads. */
export interface LoaderOptions extends Omit<
  LoaderStart,
  'activity' | 'patience' | 'capabilities' | 'modules' | 'peers' | 'peerAddresses' | 'recordPath' | 'quarantined'
> {
  /** Folder of the records of what is being loaded, see Quarantine. Default: nothing is recorded. */
  readonly recordFolder?: string;
  /** Makes a connection to the host capabilities. */
  readonly connectCapabilities: () => CapabilityConnection;
  /** The modules that serve, so that a new thread need not fetch and compile them again. */
  readonly modules: () => readonly CompiledPolicyModule[];
  /** How modules are fetched from other replicas; undefined until this process is a replica. Default: never. */
  readonly peers?: () => PeerAccess | undefined;
}

/** A load and its number, which its outcome repeats. */
export type LoadJob = readonly [seq: number, request: LoadRequest];

/** Outcomes of loads, by number. */
export type Loaded = readonly (readonly [seq: number, outcome: LoadOutcome])[];

/** An untrusted entry as JSON text: a copied object with keys such as `1000` takes a thousand times its text. */
export interface EntryText {
  readonly id: string;
  readonly json: string;
}

/** To the thread. */
export type ToLoader =
  | { readonly type: 'parse'; readonly seq: number; readonly text: string; readonly fileName: string }
  | { readonly type: 'read'; readonly seq: number; readonly entries: readonly EntryText[] }
  | { readonly type: 'load'; readonly jobs: readonly LoadJob[] }
  /** Digests of the modules that serve; the thread drops all others. */
  | { readonly type: 'keep'; readonly digests: readonly string[] }
  | { readonly type: 'peers'; readonly addresses: PeerAddresses };

/** From the thread. */
export type FromLoader =
  | { readonly type: 'read'; readonly seq: number; readonly entries: readonly ReadPolicy[] }
  | { readonly type: 'unparsable'; readonly seq: number; readonly message: string }
  | { readonly type: 'loaded'; readonly outcomes: Loaded }
  /** Loads that need more time than a quick thread gives. */
  | { readonly type: 'unfinished'; readonly seqs: readonly number[] }
  | { readonly type: 'log'; readonly entry: LogEntry };

/** Callbacks of a lane. */
export interface LaneListener {
  loaded(outcomes: Loaded): void;
  /** A load exceeded the time limit of this lane. `stage` is undefined when the thread itself stopped it. */
  unfinished(job: LoadJob, stage: Stage | undefined): void;
  log(entry: LogEntry): void;
}

interface PendingRead {
  readonly message: ToLoader;
  /** Name of the text, for messages. */
  readonly name: string;
  readonly resolve: (entries: readonly ReadPolicy[]) => void;
  readonly reject: (error: Error) => void;
}

/** One loader thread, started on demand. */
export class LoaderLane {
  readonly #patience: Patience;
  readonly #start: LoaderOptions;
  readonly #listener: LaneListener;
  readonly #quarantined: () => readonly Quarantined[];
  readonly #recordPath: string | undefined;
  readonly #reads = new Map<number, PendingRead>();
  readonly #loads = new Map<number, LoadRequest>();
  #worker: Worker | undefined;
  #peerAddresses: PeerAddresses = { replicas: [], controllers: [] };
  #activity = new WorkerActivity();
  readonly #deadline = new CompileDeadline();
  /** How many threads in a row ended without an answer and without a culprit. */
  #deaths = 0;
  #idle: NodeJS.Timeout | undefined;
  readonly #watchdog: NodeJS.Timeout;
  #stopped = false;

  /** @param quarantined what may not be loaded when a thread starts */
  constructor(
    patience: Patience,
    start: LoaderOptions,
    listener: LaneListener,
    quarantined: () => readonly Quarantined[] = () => [],
  ) {
    this.#patience = patience;
    this.#quarantined = quarantined;
    this.#recordPath = start.recordFolder === undefined ? undefined : recordPath(start.recordFolder, patience);
    this.#start = start;
    this.#listener = listener;
    this.#watchdog = setInterval(() => this.#watch(), WATCHDOG_INTERVAL_MS);
    this.#watchdog.unref();
  }

  /** @throws EvaluationError 'policies-unreadable', 'thread-ended' */
  parse(seq: number, text: string, fileName: string): Promise<readonly ReadPolicy[]> {
    return this.#read(seq, fileName, { type: 'parse', seq, text, fileName });
  }

  /** @throws EvaluationError 'thread-ended'; RangeError for what is nested too deeply to be written as JSON */
  async read(seq: number, entries: readonly UnreadPolicy[]): Promise<readonly ReadPolicy[]> {
    const texts = entries.map(({ id, spec }): EntryText => ({ id, json: JSON.stringify(spec) }));
    return await this.#read(seq, 'the policies', { type: 'read', seq, entries: texts });
  }

  async #read(seq: number, name: string, message: ToLoader): Promise<readonly ReadPolicy[]> {
    this.#send(message);
    const { promise, resolve, reject } = Promise.withResolvers<readonly ReadPolicy[]>();
    this.#reads.set(seq, { message, name, resolve, reject });
    return await promise;
  }

  load(jobs: readonly LoadJob[]): void {
    for (const [seq, request] of jobs) {
      this.#loads.set(seq, request);
    }
    this.#send({ type: 'load', jobs });
  }

  /** Sets the modules that serve; the thread drops all others. */
  keep(digests: readonly string[]): void {
    this.#worker?.postMessage({ type: 'keep', digests } satisfies ToLoader);
  }

  /** Sets the addresses of other replicas and controllers. */
  peers(addresses: PeerAddresses): void {
    this.#peerAddresses = addresses;
    this.#worker?.postMessage({ type: 'peers', addresses } satisfies ToLoader);
  }

  /** Replaces the thread, because its start options are outdated. */
  renew(): void {
    this.#replace();
    this.#resend();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#watchdog);
    clearTimeout(this.#idle);
    await endThread(this.#worker);
    this.#removeRecord();
  }

  /** Sends a message to the thread, and starts the thread if necessary. */
  #send(message: ToLoader): void {
    if (this.#stopped) {
      return;
    }
    clearTimeout(this.#idle);
    this.#worker ??= this.#spawn();
    this.#worker.postMessage(message);
  }

  /** Ends the thread after a while without work: it holds as much memory as a worker. */
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
    const { connectCapabilities, modules, peers, recordFolder: _, ...start } = this.#start;
    const capabilities = connectCapabilities();
    const workerData: LoaderStart = {
      ...start,
      activity: this.#activity.buffer,
      patience: this.#patience,
      capabilities,
      modules: modules(),
      peers: peers?.(),
      peerAddresses: this.#peerAddresses,
      recordPath: this.#recordPath,
      quarantined: this.#quarantined(),
    };
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const worker = startThread(new URL(`./loader-thread.${extension}`, import.meta.url), {
      name: `${this.#patience} loader`,
      workerData,
      transferList: [capabilities.port],
    });
    // Answers of a replaced thread may still arrive. They are valid; only the first answer to a request counts.
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
    this.#deadline.see(this.#activity.current(), () => this.#cpuMs());
    const overdue = this.#activity.overdue();
    if (overdue !== undefined && this.#worker !== undefined && !this.#isAhead(overdue)) {
      this.#restart(overdue);
    }
  }

  /** Processor time of the thread; undefined where the system does not tell. Milliseconds. */
  #cpuMs(): number | undefined {
    const { nativeThreadId } = this.#activity;
    return nativeThreadId === undefined ? undefined : threadCpuMs(nativeThreadId);
  }

  /** Whether a compilation may go on. Not in the quick thread, where others wait: the patient one does it again. */
  #isAhead(overdue: Running): boolean {
    const isPatient = this.#patience === 'patient' && STAGES[overdue.member] === 'compile';
    return isPatient && this.#deadline.isAhead(overdue, this.#cpuMs(), monotonicNow());
  }

  /** Replaces a thread that is stuck or ended. Reports the load that caused it; all other work starts again. */
  #restart(culprit: { readonly seq: number; readonly member: number } | undefined): void {
    // Not counted with a culprit, which is reported below: many may follow one another.
    this.#deaths += culprit === undefined ? 1 : 0;
    this.#replace();
    if (culprit !== undefined) {
      const stage = STAGES[culprit.member] ?? 'check';
      const owner = this.#ownerOf(culprit.seq);
      for (const seq of this.#loadsLike(culprit.seq, stage)) {
        this.#unfinished(seq, stage);
      }
      this.#passTurn(owner);
    }
    if (this.#deaths > MAX_DEATHS) {
      this.#failAll();
    } else {
      this.#resend();
    }
  }

  #ownerOf(seq: number): string | undefined {
    const request = this.#loads.get(seq);
    return request && loadOwner(request);
  }

  /** An owner has had its turn: the next thread gets its other loads last. */
  #passTurn(owner: string | undefined): void {
    for (const [seq, request] of [...this.#loads].filter(([one]) => this.#ownerOf(one) === owner)) {
      this.#loads.delete(seq);
      this.#loads.set(seq, request);
    }
  }

  /** Ends the thread; the next message starts another one. */
  #replace(): void {
    const ended = this.#worker;
    this.#worker = undefined;
    void ended?.terminate();
    this.#removeRecord();
  }

  /** The thread has ended, and the process goes on: what it was loading is no suspect. */
  #removeRecord(): void {
    if (this.#recordPath !== undefined) {
      rmSync(this.#recordPath, { force: true });
    }
  }

  #resend(): void {
    for (const { message } of this.#reads.values()) {
      this.#send(message);
    }
    if (this.#loads.size > 0) {
      this.#send({ type: 'load', jobs: [...this.#loads] });
    }
  }

  /** The culprit, and when its module failed before the check of settings, all loads of that module alone. */
  #loadsLike(culprit: number, stage: Stage): number[] {
    const request = this.#loads.get(culprit);
    const [module, ...others] = request === undefined ? [] : modulesOf(request.definition);
    if (stage === 'check' || module === undefined || others.length > 0) {
      return [culprit];
    }
    const isLike = ({ definition, digests, from, isForTenant }: LoadRequest): boolean => {
      const modules = modulesOf(definition);
      return (
        modules.length === 1 &&
        modules[0] === module &&
        digests?.[module] === request?.digests?.[module] &&
        from === request?.from &&
        isForTenant === request?.isForTenant
      );
    };
    return [...this.#loads].filter(([, other]) => isLike(other)).map(([seq]) => seq);
  }

  /** Fails all work: it would end the next thread, too. */
  #failAll(): void {
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
    const message = 'the loader ended repeatedly; is the process out of memory?';
    const outcome: LoadOutcome = { ok: false, reason: 'SettingsCheckFailed', message, transient: true };
    this.#loaded([...this.#loads.keys()].map((seq) => [seq, outcome]));
  }
}
