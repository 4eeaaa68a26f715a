// The evaluation workers: threads that hold the policy table and evaluate one review at a time. The pool keeps every
// review's bytes until its answer is there, so that a worker can be ended at any moment without losing a request.
import { EvaluationError } from '../errors.ts';
import {
  type FromWorker,
  LONG_REVIEW_MS,
  type ExistingObject,
  type ReviewAnswer,
  type ReviewInput,
  type ReviewRoute,
  type Running,
  type TableChange,
} from '../evaluation-protocol.ts';
import type { ObjectReference } from '../../engine/index.ts';
import type { LogEntry } from '../../log/index.ts';
import { errorText } from '../../values/index.ts';
import type { FindResult, WatchedChange } from '../watched-objects.ts';
import type { WorkerThread } from './worker-thread.ts';
import { EndingThreads } from './ending-threads.ts';
import { HeldTimes } from './held-times.ts';
import { PublishedTable } from './published-table.ts';
import { ReviewDispatch } from './review-dispatch.ts';
import { type PoolAnswer, bucketKey, type ObservedPolicy, ReviewJob, type SubmittedReview } from './review-job.ts';
import { LAST_CALL_MS, SlowLane } from './slow-lane.ts';
import { UsualTimes } from './usual-times.ts';
import { type WorkerThreadsOptions, WorkerThreads } from './worker-threads.ts';

/** Interval between checks for guests past their deadline. Milliseconds. */
export const WATCHDOG_INTERVAL_MS = 25;
/**
 * When every worker has been busy this long while others wait, the owners of the policies that hold them are moved to the
 * slow lane: long against an evaluation (well under a millisecond), short against a webhook timeout (seconds). Milliseconds.
 */
const HOLD_LIMIT_MS = 100;
/**
 * Of that time, how much a policy must have used (see HeldTimes) to hold its worker: on a busy machine all take long, and the
 * first review of a new worker loads code.
 */
const HOLD_USED_MS = 50;
/** How long a review of a slow owner may hold the only worker while others wait. Milliseconds. */
const SLICE_MS = 250;
/**
 * Reviews that wait or run at once. At the API server's largest request (3 MiB) this bounds memory only together with
 * {@link MAX_HELD_BYTES}; alone it bounds the time that a new request would wait.
 */
const MAX_HELD_REVIEWS = 20_000;
/** Bytes of bodies that wait or run at once: room for 36 reviews of the largest size, or 50,000 ordinary ones. */
const MAX_HELD_BYTES = 256 * 1024 * 1024;
/** What an object counts of these bytes: etcd stores no larger ones, and their text is not there to be measured. */
const LARGEST_OBJECT_BYTES = 1.5 * 1024 * 1024;
/** Attempts for a review whose workers end during its evaluation; then it is answered as if its policy had timed out. */
const MAX_TRIES = 2;
/** How long the pool waits before it replaces a worker that ended before it was ready. Milliseconds. */
const START_RETRY_MS = 1_000;
/** How long a review without a time limit waits for an object: the longest timer. Milliseconds. */
const MAX_FIND_MS = 2 ** 31 - 1;

const NO_CLUSTER: FindResult = { state: 'unreadable', reason: 'no cluster is configured' };

/** Options and listeners of a pool. */
export interface WorkerPoolOptions extends WorkerThreadsOptions {
  readonly log: (entry: LogEntry) => void;
  /** Called when a guest used up its time or its fuel, or ended its worker. */
  readonly onTimeout?: (policy: string) => void;
  /** Called when a worker is replaced. */
  readonly onRestart?: (reason: RestartReason) => void;
  /** Called when a worker cannot load a policy that the loader could. */
  readonly onApplyFailure?: (id: string, message: string) => void;
  /** Reads an object that a review needs and that workers do not have, and publishes it. Default: there is no cluster. */
  readonly find?: (object: ObjectReference) => Promise<FindResult>;
  /** How long before its end a review is evaluated without slow policies that found no room. Default: {@link LAST_CALL_MS}. */
  readonly lastCallMs?: number;
}

/** Why a worker was replaced. */
export type RestartReason = 'timeout' | 'crash' | 'held' | 'renewed';

/** Threads that evaluate reviews against one policy table. */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #table = new PublishedTable();
  readonly #threads: WorkerThreads;
  readonly #slowLane: SlowLane;
  readonly #usual = new UsualTimes();
  readonly #held = new HeldTimes();
  readonly #ending = new EndingThreads();
  readonly #dispatch: ReviewDispatch;
  #seq = 0;
  #heldReviews = 0;
  #heldBytes = 0;
  #watchdog: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    const onTimeout = (policy: string): void => options.onTimeout?.(policy);
    this.#slowLane = new SlowLane(this.#table, onTimeout, options.size, this.#ending, options.lastCallMs);
    this.#threads = new WorkerThreads(options, this.#table, {
      received: (worker, message) => this.#receive(worker, message),
      failed: (error) =>
        options.log({ level: 'error', message: 'evaluation worker failed', fields: { error: error.message } }),
      exited: (worker) => this.#exited(worker),
    });
    this.#dispatch = new ReviewDispatch(this.#threads.workers, this.#slowLane, this.#usual);
  }

  /** Starts the workers; resolves when each is ready, or when they are ended. */
  async start(): Promise<void> {
    this.#watchdog = setInterval(() => this.#watch(), WATCHDOG_INTERVAL_MS);
    this.#watchdog.unref();
    await this.#threads.start();
  }

  /** Reviews that wait for a worker. */
  get waiting(): number {
    return this.#dispatch.queue.length + this.#slowLane.length;
  }

  /** Reviews that were submitted and are not answered. */
  get held(): number {
    return this.#heldReviews;
  }

  /** Owners of policies that may hold only their share of the workers at the moment, see policyOwner. */
  get slowOwners(): number {
    return this.#slowLane.owners;
  }

  /** Threads that were ended and still run. */
  get endingThreads(): number {
    return this.#ending.size;
  }

  /** Whether the table has an entry of that id, loaded or not. */
  knows(id: string): boolean {
    return this.#table.get(id) !== undefined;
  }

  /** Whether the table has a loaded policy of that id. */
  has(id: string): boolean {
    const entry = this.#table.get(id);
    return entry !== undefined && !('failed' in entry && entry.isLoading === true);
  }

  /**
   * Evaluates a review by a policy, or by the policies of a bucket that it matches (route `admit`); `done` is called once. A
   * review of a slow policy that finds no free worker within `requestTimeoutMs` is answered as if its policy had timed out.
   * @throws EvaluationError 'overloaded' when too many reviews are held already, 'stopping' after stop().
   */
  submit(
    route: ReviewRoute,
    target: string,
    body: Uint8Array,
    requestTimeoutMs: number,
    done: (answer: PoolAnswer) => void,
  ): void {
    this.#submit({ route, target, input: body, requestTimeoutMs, done });
  }

  /**
   * Has policies judge an object; as {@link submit}. The answer of several is without those that have to be asked one by one:
   * policies of slow owners, untried ones of namespaces, and those that need an object which is not known yet.
   */
  judge(policies: readonly string[], object: ExistingObject, done: (answer: PoolAnswer) => void): void {
    const [first = '', ...others] = policies;
    const target = others.length === 0 ? first : '';
    this.#submit({ route: 'object', target, input: { ...object, policies }, requestTimeoutMs: Infinity, done });
  }

  #submit(request: Omit<SubmittedReview, 'seq' | 'owner'>): void {
    const { route, target, input } = request;
    const bytes = bytesOf(input);
    if (this.#stopped) {
      throw new EvaluationError('stopping', 'the policy server is stopping');
    }
    if (this.#heldReviews >= MAX_HELD_REVIEWS || this.#heldBytes + bytes > MAX_HELD_BYTES) {
      throw new EvaluationError('overloaded', `${this.#heldReviews} reviews are waiting already; try again later`);
    }
    this.#heldReviews += 1;
    this.#heldBytes += bytes;
    // Sequence numbers live in a 32-bit cell of shared memory.
    this.#seq = this.#seq === 0x7fff_ffff ? 1 : this.#seq + 1;
    const owner = route === 'admit' || target === '' ? undefined : this.#table.ownerOf(target);
    const job = new ReviewJob({ ...request, seq: this.#seq, owner });
    this.#dispatch.queue.push(job);
    this.#dispatch.soon();
  }

  /**
   * Changes the table of every worker. Reviews submitted before may still be evaluated with the old table; reviews
   * submitted afterwards never are, because a worker's messages arrive in order. Resolves when all have changed over.
   */
  publish(change: TableChange): Promise<void> {
    const changed = [...change.removals, ...change.upserts.map(({ id }) => id)];
    const before = changed.map((id) => this.#table.get(id));
    const numbers = this.#table.apply(change);
    for (const id of changed) {
      // Measurements belong to a version.
      this.#slowLane.forget(id);
      this.#usual.delete(id);
    }
    for (const entry of [...before, ...change.upserts]) {
      this.#usual.delete(bucketKey(entry?.match?.bucket ?? entry?.id ?? ''));
    }
    return this.#threads.publish(change, numbers);
  }

  /** Sends changes of watched objects to every worker; reviews that are submitted later see them. */
  publishWatched(change: WatchedChange): void {
    this.#threads.publishWatched(change);
  }

  /** Replaces every worker, because their start options are outdated. Reviews under way start again. */
  renew(): void {
    this.#threads.endSpare();
    for (const worker of this.#threads.workers) {
      this.#end(worker, 'renewed');
    }
    this.#dispatch.soon();
  }

  /** Ends all workers. Reviews still held are not answered. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#watchdog);
    this.#dispatch.stop();
    await this.#threads.stop();
  }

  #receive(worker: WorkerThread, message: FromWorker): void {
    switch (message.type) {
      case 'answer':
        this.#answered(worker, message.answer);
        this.#dispatch.soon();
        break;
      case 'deferred':
        this.#deferred(worker.take(message.seq), message.owner);
        this.#dispatch.soon();
        break;
      case 'unknown-object':
        void this.#find(worker.take(message.seq), message.object);
        this.#dispatch.soon();
        break;
      case 'log':
        this.#options.log(message.entry);
        break;
      case 'applied': {
        if (message.isRenumbered) {
          worker.observations.clear();
        }
        for (const failure of message.failures) {
          this.#options.onApplyFailure?.(failure.id, failure.message);
        }
        this.#threads.applied(worker, message.version);
        break;
      }
      case 'ready':
        worker.ready(message.nativeThreadId);
        this.#threads.started(worker);
        this.#dispatch.soon();
        break;
      default:
        message satisfies never;
    }
  }

  #answered(worker: WorkerThread, answer: ReviewAnswer): void {
    const { seq, result, observations: sent, times, evaluationMs, held, monitored, uses } = answer;
    // Also for a dropped answer: later answers refer to its observations by number.
    const observations = sent.map((one) => worker.observations.receive(one));
    const job = worker.take(seq);
    if (job === undefined) {
      return;
    }
    if (job.timedOut === null && !job.isDeferred && observations.length > 0) {
      this.#usual.note(job.usualKey, evaluationMs);
    }
    this.#slowLane.answered(job, held);
    this.#release(job);
    const observed = observations.flatMap((observation, index): ObservedPolicy[] => {
      const ms = times[index] ?? -1;
      if (observation?.outcome === 'timeout') {
        if (ms >= 0 && !job.reported.has(observation.policy)) {
          // The policy ran out of fuel.
          this.#slowLane.add(observation.policy);
        }
        this.#slowLane.report(job, observation.policy);
      }
      return observation === null ? [] : [{ observation, evaluationMs: Math.max(ms, 0) }];
    });
    job.answer({ result, observed, evaluationMs, ...(monitored && { monitored }), ...(uses && { uses }) });
  }

  /** Queues a deferred review again. */
  #deferred(job: ReviewJob | undefined, owner: string | undefined): void {
    if (job !== undefined) {
      job.defer(owner);
      this.#dispatch.queue.push(job);
    }
  }

  /** Reads an object that a review needs, and queues the review again when the result is there. */
  async #find(job: ReviewJob | undefined, object: ObjectReference): Promise<void> {
    if (job === undefined) {
      return;
    }
    const late = Promise.withResolvers<FindResult>();
    const patience = setTimeout(
      () => late.resolve({ state: 'unreadable', reason: 'the API server did not answer in time' }),
      Math.min(job.expiresAt - LAST_CALL_MS - performance.now(), MAX_FIND_MS),
    );
    const found = await Promise.race([this.#options.find?.(object) ?? NO_CLUSTER, late.promise]).catch(
      (error: unknown): FindResult => ({ state: 'unreadable', reason: errorText(error) }),
    );
    clearTimeout(patience);
    if (!this.#stopped) {
      // One lookup of an object for each review: it counts as absent when it is deleted before the review is evaluated.
      job.failedLookups.push({ object, result: found.state === 'published' ? { state: 'absent' } : found });
      this.#dispatch.queue.push(job);
      this.#dispatch.soon();
    }
  }

  #release(job: ReviewJob): void {
    this.#heldReviews -= 1;
    this.#heldBytes -= bytesOf(job.input);
  }

  #watch(): void {
    for (const worker of this.#threads.workers) {
      const { overdue } = worker;
      if (overdue !== undefined && !worker.isEnding) {
        // Undefined after withdraw(): another worker evaluates the review.
        const job = worker.jobs.find(({ seq }) => seq === overdue.seq);
        if (job !== undefined) {
          this.#cutOff(job, overdue);
        }
        this.#end(worker, 'timeout');
      }
    }
    // After a pause of this thread, workers seem stuck whose answers are read in this turn.
    setImmediate(() => this.#watchHeld());
    this.#slowLane.keepStuck();
    for (const job of this.#slowLane.giveUp()) {
      this.#dispatch.queue.push(job);
    }
    this.#dispatch.soon();
  }

  /** Bounds how long reviews hold workers while others wait. */
  #watchHeld(): void {
    if (this.#stopped) {
      return;
    }
    const { workers } = this.#threads;
    this.#withdraw();
    this.#held.update(workers, (worker) => this.#slowLane.heldBy(worker), LONG_REVIEW_MS);
    if (workers.length > 1) {
      this.#slowLane.restrict(workers, this.#held);
    }
    this.#freeAWorker();
    this.#dispatch.soon();
  }

  /** Withdraws reviews that wait behind one that takes long. */
  #withdraw(): void {
    for (const worker of this.#threads.workers) {
      if (worker.jobs.length > 1 && performance.now() - worker.busySince > LONG_REVIEW_MS) {
        this.#dispatch.queue.putBack(worker.withdraw());
      }
    }
  }

  /** When all workers are held and reviews wait: moves the owners that hold them to the slow lane and ends one worker. */
  #freeAWorker(): void {
    const busy = this.#threads.workers.filter(({ jobs, isEnding }) => jobs.length > 0 && !isEnding);
    const [only] = this.#threads.workers;
    const now = performance.now();
    if (
      busy.length < this.#threads.workers.length ||
      busy.some((worker) => now - worker.busySince < HOLD_LIMIT_MS || this.#held.of(worker) < HOLD_USED_MS) ||
      !this.#othersWait(busy)
    ) {
      return;
    }
    if (this.#threads.workers.length === 1) {
      this.#cutShort(only);
      return;
    }
    for (const worker of busy) {
      const policy = this.#slowLane.policyOf(worker);
      const { runningJob } = worker;
      if (policy !== undefined && runningJob !== undefined) {
        this.#slowLane.add(policy);
        // It is known to be for a slow owner. Several policies do without it.
        runningJob.owner ??= runningJob.together === undefined ? this.#table.ownerOf(policy) : undefined;
      }
    }
    const latest = busy.toSorted((a, b) => b.busySince - a.busySince)[0];
    if (latest !== undefined) {
      this.#end(latest, 'held');
    }
  }

  /** Whether reviews wait for workers that others hold. */
  #othersWait(busy: readonly WorkerThread[]): boolean {
    const holders = new Set(busy.map((worker) => this.#slowLane.ownerIn(worker)));
    const waiting = [...this.#dispatch.queue.list(), ...busy.flatMap(({ jobs }) => jobs.slice(1))];
    // The fast lane finds out which owner a bucket's review is for.
    return waiting.some(({ owner }) => owner === undefined || !holders.has(owner));
  }

  /** The only worker is held by a slow owner while others wait: answers its review as timed out. */
  #cutShort(worker: WorkerThread | undefined): void {
    const job = worker?.runningJob;
    if (worker !== undefined && job !== undefined && this.#slowLane.isFor(job) && this.#held.of(worker) >= SLICE_MS) {
      // Its owner does not become slow for longer by that.
      this.#slowLane.cutOff(job, worker.running);
      this.#end(worker, 'held');
    }
  }

  /** Marks the policy that ran as timed out for this review, and its owner as slow. */
  #cutOff(job: ReviewJob, running?: Pick<Running, 'member' | 'policy'>): void {
    const policy = this.#slowLane.cutOff(job, running);
    if (policy !== undefined) {
      this.#slowLane.add(policy);
    }
  }

  /**
   * Ends a worker in the middle of its work, or replaces one that crashed, which has ended; its reviews go back to the front of the
   * queue, a new worker starts.
   */
  #end(worker: WorkerThread, reason: RestartReason): void {
    if (!worker.isEnding) {
      this.#options.onRestart?.(reason);
      if (reason !== 'crash') {
        this.#ending.add(worker, this.#slowLane.ownerIn(worker));
      }
      this.#dispatch.queue.putBack(worker.end());
      this.#threads.replace(worker, reason === 'timeout' || reason === 'held');
    }
  }

  /** Handles a worker that ended by itself, out of memory or by a fault of ours: its review is tried once more. */
  #exited(worker: WorkerThread): void {
    if (worker.isEnding) {
      this.#ending.delete(worker);
      this.#dispatch.soon();
    }
    if (worker.isEnding || this.#stopped || this.#threads.lost(worker)) {
      return;
    }
    const job = worker.runningJob;
    if (job !== undefined) {
      job.tries += 1;
      if (job.tries >= MAX_TRIES) {
        this.#blame(worker, job);
      }
    }
    if (worker.isReady) {
      this.#end(worker, 'crash');
    } else {
      // A worker that cannot start would fail again at once.
      setTimeout(() => this.#end(worker, 'crash'), START_RETRY_MS).unref();
    }
  }

  /** Answers a review whose workers ended repeatedly without the policy that ran. */
  #blame(worker: WorkerThread, job: ReviewJob): void {
    const { running } = worker;
    if (job.isNamed) {
      this.#cutOff(job);
    } else if (running?.seq === job.seq) {
      this.#cutOff(job, { ...running, member: -1 });
    } else {
      // No policy ran: the review itself ends workers.
      worker.take(job.seq);
      this.#release(job);
      job.answer({ result: { kind: 'failed' }, observed: [], evaluationMs: 0 });
    }
  }
}

function bytesOf(input: ReviewInput): number {
  return input instanceof Uint8Array ? input.length : LARGEST_OBJECT_BYTES;
}
