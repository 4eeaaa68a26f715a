// Evaluates governance policies in threads, so that nothing else of the process waits for them: ordinary policies in one thread, and
// what is slow in another one, where it waits for its turn.
import type { Logger } from '../../log/index.ts';
import { keyText, type ObjectKey } from '../../resources/index.ts';
import { aborted, type ObjectCache, type Runnable } from '../../runtime/index.ts';
import { JobThread, ThreadError } from '../../threads/index.ts';
import { KeptEntries, parseJson } from '../../values/index.ts';
import type { EvaluationObjects } from './evaluation-objects.ts';
import type { EvaluationJobs, JobType } from './evaluation-jobs.ts';
import type { ForeseenAnswer, ObjectQuestion, QuestionAnswer } from './object-questions.ts';

/** Processor time of a job in the thread of ordinary policies: published ones take some milliseconds. Milliseconds. */
const ORDINARY_MS = 500;
/** Processor time of a job in the thread of slow policies: 20,000 objects take two seconds. Milliseconds. */
const SLOW_DEADLINE_MS = 5_000;
/** Evaluations that take longer are slow: fifty times what published policies take. Milliseconds. */
const SLOW_MS = 250;
/**
 * Memory of a thread: the plans of 20,000 objects of 1 KB. Until it is ended it takes twice as much of the process, so that both
 * threads fit the 1 GiB that a controller has. Megabytes.
 */
const HEAP_MB = 192;
/** First delay after an evaluation that was ended; doubles with each further one. Milliseconds. */
const FIRST_DELAY_MS = 10_000;
/** Longest delay. Milliseconds. */
const MAX_DELAY_MS = 600_000;
/** Maximum number of policies whose time is known, deleted ones included. The oldest is removed first. */
const MAX_POLICIES = 10_000;
/** How often policies of an owner may use up the time of ordinary ones, before what is unknown of that owner counts as slow. */
const MAX_STRIKES = 3;
/** How long an owner's strikes count after the last one. Milliseconds. */
const STRIKES_MS = 600_000;

const ENDED: Readonly<Record<'deadline' | 'ended', string>> = {
  deadline:
    'the policy takes too long to evaluate: split it, look up fewer objects, or let its selectors match fewer objects',
  ended:
    'the policy takes too much memory to evaluate: split it, look up fewer objects, or let its selectors match fewer objects',
};

/** A generation of a policy. */
export interface EvaluatedSpec {
  readonly kind: string;
  readonly key: ObjectKey;
  readonly generation: number | undefined;
  /** Whose policy it is, such as the namespace of its author. */
  readonly owner: string;
}

/** To a thread. */
export interface JobMessage {
  readonly type: JobType;
  /** JSON. */
  readonly input: string;
  /** Answers to questions that the thread need not ask. */
  readonly foreseen: readonly ForeseenAnswer[];
}

/** From a thread. */
export interface JobAnswer {
  /** JSON; undefined if something was not read yet, or the evaluation failed. */
  readonly result?: string;
  /** Instead of a result that the main thread does not take. */
  readonly isTooLarge?: true;
  /** A fault of ours. */
  readonly failure?: string;
  /** Processor time. Milliseconds. */
  readonly cpuMs: number;
}

type Thread = JobThread<JobMessage, JobAnswer, ObjectQuestion, QuestionAnswer>;

/** Runs a job of an evaluation. @param objects what it reads. Default: nothing */
export type RunJob = <Type extends JobType>(
  type: Type,
  input: EvaluationJobs[Type]['input'],
  objects?: Pick<EvaluationObjects, 'answer' | 'foreseen'>,
) => Promise<EvaluationJobs[Type]['result'] | undefined>;

export type Evaluated<Result> =
  | { readonly state: 'done'; readonly result: Result }
  /** It waits among slow policies, which wakes the policy when there is a result; or for some time, after it was ended. */
  | { readonly state: 'later'; readonly afterMs: number | undefined }
  /** It used up its time or memory. */
  | { readonly state: 'ended'; readonly reason: string; readonly retryAfterMs: number };

/** One evaluation, all of its jobs. */
interface EvaluationWork<Result> {
  readonly run: (run: RunJob, signal: AbortSignal) => Promise<Result>;
  /** Called when there is a result, if the evaluation was not waited for. */
  readonly wake: () => void;
}

/** Processor time of a job in each thread. Milliseconds. */
export interface EvaluationLimits {
  readonly ordinaryMs: number;
  readonly slowMs: number;
}

interface KnownTime {
  readonly generation: number | undefined;
  readonly isSlow: boolean;
  /** Consecutive evaluations that were ended. */
  readonly ended: number;
  /** When the same generation may be evaluated again. Milliseconds. */
  readonly until: number;
}

/** An evaluation that nobody waits for. */
interface Pending {
  readonly generation: number | undefined;
  /** Whether the policy was to be evaluated meanwhile: something changed. */
  isOutdated: boolean;
  /** Undefined while it runs. */
  outcome: (() => Evaluated<unknown>) | undefined;
}

/** The threads that evaluate governance policies. */
export class EvaluationLanes implements Runnable {
  readonly name = 'governance evaluation';
  readonly #log: Logger;
  readonly #limits: EvaluationLimits;
  #ordinary: Thread;
  #slow: Thread;
  readonly #times = new KeptEntries<string, KnownTime>({ maxEntries: MAX_POLICIES });
  readonly #strikes = new KeptEntries<string, { readonly count: number; readonly until: number }>({
    maxEntries: MAX_POLICIES,
  });
  readonly #pending = new Map<string, Pending>();
  #stop = new AbortController();

  constructor(log: Logger, limits: EvaluationLimits = { ordinaryMs: ORDINARY_MS, slowMs: SLOW_DEADLINE_MS }) {
    this.#log = log;
    this.#limits = limits;
    this.#ordinary = this.#thread('ordinary policies', limits.ordinaryMs);
    this.#slow = this.#thread('slow policies', limits.slowMs);
  }

  /** Ends the threads when `signal` is aborted; may then be started again. */
  async start(signal: AbortSignal): Promise<void> {
    await aborted(signal);
    this.#stop.abort();
    this.#stop = new AbortController();
    this.#pending.clear();
    this.#ordinary.stop();
    this.#slow.stop();
    this.#ordinary = this.#thread('ordinary policies', this.#limits.ordinaryMs);
    this.#slow = this.#thread('slow policies', this.#limits.slowMs);
  }

  /**
   * Keeps the thread of ordinary policies ready while there is a policy in one of the caches.
   * @returns ends that
   */
  readyFor(caches: readonly Pick<ObjectCache, 'size' | 'subscribe'>[]): () => void {
    const update = (): void => this.#ordinary.keep(caches.some(({ size }) => size > 0));
    const ends = caches.map((cache) => cache.subscribe(update));
    return () => {
      ends.forEach((end) => end());
      this.#ordinary.keep(false);
    };
  }

  /** Whether no evaluation runs that nobody waits for. */
  get isIdle(): boolean {
    return this.#pending.size === 0;
  }

  /** Whether an evaluation of the policy runs, or has a result that was not asked for yet. */
  isPending(spec: EvaluatedSpec): boolean {
    return this.#pending.has(idOf(spec));
  }

  /** Forgets the evaluation of a policy that is not to be evaluated any more. Its time stays known. */
  forget(spec: Pick<EvaluatedSpec, 'kind' | 'key'>): void {
    this.#pending.delete(idOf(spec));
  }

  /** Evaluates, or gives the result of an evaluation that was not waited for. @throws what the evaluation throws */
  async evaluate<Result>(
    spec: EvaluatedSpec,
    work: EvaluationWork<Result>,
    signal: AbortSignal,
  ): Promise<Evaluated<Result>> {
    const known = this.#take(spec, work);
    if (known !== undefined) {
      return known as Evaluated<Result>;
    }
    const waitMs = this.#waitMs(spec, Date.now());
    if (waitMs > 0) {
      return { state: 'later', afterMs: waitMs };
    }
    const outcome = this.#isSlow(spec, Date.now()) ? 'slow' : await this.#attempt(this.#ordinary, spec, work, signal);
    if (outcome !== 'slow') {
      return outcome;
    }
    this.#evaluateLater(spec, work);
    return { state: 'later', afterMs: undefined };
  }

  /**
   * Runs one job in the thread of ordinary policies.
   * @returns undefined if it was ended, now or before
   */
  async quick<Type extends JobType>(
    spec: EvaluatedSpec,
    type: Type,
    input: EvaluationJobs[Type]['input'],
  ): Promise<EvaluationJobs[Type]['result'] | undefined> {
    const job = { ...spec, kind: `${type} of ${spec.kind}` };
    if (this.#times.get(idOf(job))?.generation === spec.generation && this.#isSlow(job, Date.now())) {
      return undefined;
    }
    const work = { run: async (run: RunJob) => await run(type, input), wake: () => undefined };
    const outcome = await this.#attempt(this.#ordinary, job, work, this.#stop.signal);
    return outcome !== 'slow' && outcome.state === 'done' ? outcome.result : undefined;
  }

  #thread(name: string, deadlineMs: number): Thread {
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    return new JobThread({
      module: new URL(`./evaluation-thread.${extension}`, import.meta.url),
      name,
      workerData: undefined,
      deadlineMs,
      deadlineOf: 'processor time',
      heapMb: HEAP_MB,
      log: this.#log,
    });
  }

  /** The result of an evaluation that was not waited for; undefined if there is none. */
  #take<Result>(spec: EvaluatedSpec, { wake }: EvaluationWork<Result>): Evaluated<unknown> | undefined {
    const id = idOf(spec);
    const pending = this.#pending.get(id);
    if (pending === undefined) {
      return undefined;
    }
    if (pending.outcome === undefined) {
      pending.isOutdated = true;
      return { state: 'later', afterMs: undefined };
    }
    this.#pending.delete(id);
    if (pending.generation !== spec.generation) {
      return undefined;
    }
    if (pending.isOutdated) {
      setImmediate(wake);
    }
    return pending.outcome();
  }

  #evaluateLater<Result>(spec: EvaluatedSpec, work: EvaluationWork<Result>): void {
    const id = idOf(spec);
    const pending: Pending = { generation: spec.generation, isOutdated: false, outcome: undefined };
    this.#pending.set(id, pending);
    const { signal } = this.#stop;
    const settle = (outcome: () => Evaluated<unknown>): void => {
      if (this.#pending.get(id) === pending && !signal.aborted) {
        pending.outcome = outcome;
        work.wake();
      }
    };
    this.#attempt(this.#slow, spec, work, signal).then(
      (outcome) => settle(() => (outcome === 'slow' ? this.#ended(spec, 'deadline') : outcome)),
      (error: unknown) =>
        settle(() => {
          throw error;
        }),
    );
  }

  /** Evaluates in a thread. @returns `slow` if the time of that thread was used up */
  async #attempt<Result>(
    thread: Thread,
    spec: EvaluatedSpec,
    work: EvaluationWork<Result>,
    signal: AbortSignal,
  ): Promise<Evaluated<Result> | 'slow'> {
    let cpuMs = 0;
    const run: RunJob = async (type, input, objects) => {
      const answer = await runJob(thread, spec.owner, type, input, objects);
      cpuMs += answer.cpuMs;
      if (answer.failure !== undefined) {
        throw new Error(answer.failure);
      }
      if (answer.isTooLarge === true) {
        throw new ThreadError('ended', 'its result is too large');
      }
      return answer.result === undefined ? undefined : (parseJson(answer.result) as never);
    };
    try {
      const result = await work.run(run, signal);
      this.#times.set(idOf(spec), { generation: spec.generation, isSlow: cpuMs > SLOW_MS, ended: 0, until: 0 });
      return { state: 'done', result };
    } catch (error) {
      if (!(error instanceof ThreadError) || error.code === 'stopped') {
        throw error;
      }
      if (error.code === 'deadline' && thread === this.#ordinary) {
        this.#strike(spec);
        return 'slow';
      }
      return this.#ended(spec, error.code);
    }
  }

  #ended(spec: EvaluatedSpec, code: 'deadline' | 'ended'): Extract<Evaluated<never>, { state: 'ended' }> {
    const ended = (this.#times.get(idOf(spec))?.ended ?? 0) + 1;
    const retryAfterMs = Math.min(FIRST_DELAY_MS * 2 ** (ended - 1), MAX_DELAY_MS);
    const { generation } = spec;
    this.#times.set(idOf(spec), { generation, isSlow: true, ended, until: Date.now() + retryAfterMs });
    return { state: 'ended', reason: ENDED[code], retryAfterMs };
  }

  #strike(spec: EvaluatedSpec): void {
    const id = idOf(spec);
    const { ended = 0, until = 0 } = this.#times.get(id) ?? {};
    this.#times.set(id, { generation: spec.generation, isSlow: true, ended, until });
    const now = Date.now();
    const strikes = this.#strikes.get(spec.owner);
    const count = strikes === undefined || strikes.until < now ? 1 : strikes.count + 1;
    this.#strikes.set(spec.owner, { count, until: now + STRIKES_MS });
  }

  /** Delay before a policy may be evaluated again. An edit ends it. */
  #waitMs(spec: EvaluatedSpec, now: number): number {
    const known = this.#times.get(idOf(spec));
    return known?.generation === spec.generation ? Math.max(0, (known?.until ?? 0) - now) : 0;
  }

  /** Whether a policy waits for its turn: it was slow the last time, or is unknown, and others of its owner were. */
  #isSlow(spec: EvaluatedSpec, now: number): boolean {
    const known = this.#times.get(idOf(spec));
    if (known?.isSlow === true || known?.generation === spec.generation) {
      return known?.isSlow === true;
    }
    const strikes = this.#strikes.get(spec.owner);
    return strikes !== undefined && strikes.count >= MAX_STRIKES && strikes.until > now;
  }
}

async function runJob<Type extends JobType>(
  thread: Thread,
  owner: string,
  type: Type,
  input: EvaluationJobs[Type]['input'],
  objects: Pick<EvaluationObjects, 'answer' | 'foreseen'> | undefined,
): Promise<JobAnswer> {
  const message = { type, input: JSON.stringify(input), foreseen: objects?.foreseen ?? [] };
  return await thread.run(message, owner, (question) => objects?.answer(question) ?? NOTHING);
}

const NOTHING = { state: 'unreadable', reason: 'no objects are there' } as const;

function idOf({ kind, key }: Pick<EvaluatedSpec, 'kind' | 'key'>): string {
  return `${kind} ${keyText(key)}`;
}
