// The main thread's side of loading. Policies files are parsed, modules fetched and compiled, and settings checked in threads.
// A policy that takes longer than usual goes to a second thread, so that the others of the same change serve meanwhile.
import type { LogEntry } from '../../log/index.ts';
import { ModulesInUse, type PeerAddresses } from '../../modules/index.ts';
import { LoaderLane, type LoaderOptions, type LoadJob, type Loaded } from './loader-lane.ts';
import { Quarantine, type Quarantined } from './quarantine.ts';
import type { LoadOutcome, LoadRequest, UnreadPolicy, ReadPolicy, Stage } from './load-request.ts';

/** Outcomes that are reported in one turn of the event loop: few enough that reviews are answered in between. */
export const MAX_OUTCOMES = 250;

interface PendingLoad {
  readonly request: LoadRequest;
  readonly batch: Batch;
}

interface Batch {
  readonly done: (outcomes: ReadonlyMap<LoadRequest, LoadOutcome>) => void;
}

/** Outcomes of loads that did not end, by stage. */
const UNFINISHED: Readonly<Record<Stage, LoadOutcome & { readonly ok: false }>> = {
  compile: {
    ok: false,
    reason: 'InvalidModule',
    message: 'the module could not be compiled in time: it may be made to keep the compiler busy',
    transient: false,
  },
  start: {
    ok: false,
    reason: 'InvalidModule',
    message: 'the module did not end while it was started; its initialization may loop for ever',
    transient: false,
  },
  check: {
    ok: false,
    reason: 'SettingsCheckFailed',
    message:
      'the policy did not end, or ended its thread, while its settings were checked; its module may loop for ever',
    transient: false,
  },
};

/** Loads policies in threads of their own. */
export class Loader {
  readonly #quick: LoaderLane;
  readonly #patient: LoaderLane;
  readonly #inUse: ModulesInUse;
  readonly #quarantine: Quarantine | undefined;
  readonly #loads = new Map<number, PendingLoad>();
  /** Outcomes to report. */
  readonly #outcomes: Loaded[number][] = [];
  #reporting: NodeJS.Immediate | undefined;
  #seq = 0;

  constructor(start: LoaderOptions, log: (entry: LogEntry) => void) {
    this.#inUse = new ModulesInUse(start.cacheDir);
    const loaded = (outcomes: Loaded): void => this.#loaded(outcomes);
    this.#quarantine =
      start.recordFolder === undefined
        ? undefined
        : new Quarantine(start.recordFolder, (error) =>
            log({ level: 'error', message: 'cannot keep a record of quarantined modules', fields: { error } }),
          );
    for (const { policy, ends, until } of this.#quarantine?.list() ?? []) {
      const fields = { policy, ends, until: new Date(until).toISOString() };
      log({ level: 'warn', message: 'policy in quarantine: the process ended while it was loaded', fields });
    }
    const quarantined = (): readonly Quarantined[] => this.#quarantine?.list() ?? [];
    const quick = { loaded, log, unfinished: (job: LoadJob) => this.#patient.load([job]) };
    this.#quick = new LoaderLane('quick', start, quick, quarantined);
    const patient = {
      loaded,
      log,
      unfinished: ([seq, { id }]: LoadJob, stage: Stage = 'check') =>
        this.#loaded([[seq, { ...UNFINISHED[stage], at: { stage, unit: id, isOverdue: true } }]]),
    };
    this.#patient = new LoaderLane('patient', start, patient, quarantined);
  }

  /**
   * Parses the text of a policies file.
   * @throws EvaluationError 'policies-unreadable' with position and excerpt when it is not YAML, or not a policies file at
   *   all; 'thread-ended' when the thread ended repeatedly.
   */
  parse(text: string, fileName: string): Promise<readonly ReadPolicy[]> {
    this.#seq += 1;
    return this.#quick.parse(this.#seq, text, fileName);
  }

  /**
   * Reads entries of a policies file that are objects already; the results are in their order.
   * @throws EvaluationError 'thread-ended' when the thread ended repeatedly.
   * @throws RangeError when an entry is nested too deeply to be written as JSON.
   */
  read(entries: readonly UnreadPolicy[]): Promise<readonly ReadPolicy[]> {
    this.#seq += 1;
    return this.#quick.read(this.#seq, entries);
  }

  /** Loads policies; `done` is called once or more, each time with new outcomes. */
  load(requests: readonly LoadRequest[], done: Batch['done']): void {
    const batch: Batch = { done };
    const jobs = requests.map((request): LoadJob => {
      this.#seq += 1;
      this.#loads.set(this.#seq, { request, batch });
      return [this.#seq, request];
    });
    this.#quick.load(jobs);
  }

  /** Sets the modules that serve; the threads drop all others, and the cache keeps them. */
  keep(digests: readonly string[]): void {
    this.#inUse.set(digests);
    this.#quick.keep(digests);
    this.#patient.keep(digests);
  }

  /** Sets the addresses of other replicas and controllers, which have modules as well. */
  peers(addresses: PeerAddresses): void {
    this.#quick.peers(addresses);
    this.#patient.peers(addresses);
  }

  /** Replaces the threads, because their start options are outdated. Loads in progress start again. */
  renew(): void {
    this.#quick.renew();
    this.#patient.renew();
  }

  async stop(): Promise<void> {
    clearImmediate(this.#reporting);
    await Promise.all([this.#quick.stop(), this.#patient.stop(), this.#inUse.stop()]);
  }

  /** Node delivers all messages of a thread in one turn, so the outcomes of thousands of loads would be one long turn. */
  #loaded(outcomes: Loaded): void {
    this.#outcomes.push(...outcomes);
    this.#reporting ??= setImmediate(() => this.#report());
  }

  #report(): void {
    const outcomes = this.#outcomes.splice(0, MAX_OUTCOMES);
    this.#reporting = this.#outcomes.length > 0 ? setImmediate(() => this.#report()) : undefined;
    const batches = new Map<Batch, Map<LoadRequest, LoadOutcome>>();
    for (const [seq, outcome] of outcomes) {
      const pending = this.#loads.get(seq);
      if (pending === undefined) {
        continue;
      }
      this.#loads.delete(seq);
      if (outcome.ok) {
        this.#quarantine?.loaded(pending.request.id, Object.values(outcome.digests));
      }
      const together = batches.get(pending.batch) ?? new Map<LoadRequest, LoadOutcome>();
      batches.set(pending.batch, together.set(pending.request, outcome));
    }
    for (const [batch, together] of batches) {
      batch.done(together);
    }
  }
}
