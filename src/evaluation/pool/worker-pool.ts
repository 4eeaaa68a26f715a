// The evaluation workers: threads that hold the policy table and evaluate one review at a time. The pool keeps every
// review's bytes until its answer is there, so that a worker can be ended at any moment without losing a request.
import { EvaluationError } from '../errors.ts';
import {
  type FromWorker,
  type NamespacesChange,
  type ReviewAnswer,
  type Route,
  type TableChange,
} from '../evaluation-protocol.ts';
import type { LogEntry } from '../../log/index.ts';
import type { PoolMember } from './pool-member.ts';
import { PublishedTable } from './published-table.ts';
import { ReviewDispatch, STUCK_MS } from './review-dispatch.ts';
import { type Answer, bucketKey, type ObservedPolicy, ReviewJob } from './review-job.ts';
import { LAST_CALL_MS, SlowLane } from './slow-lane.ts';
import { UsualTimes } from './usual-times.ts';
import { type CrewOptions, WorkerCrew } from './worker-crew.ts';

/** How often the pool looks for guests past their deadline. Milliseconds. */
export const WATCHDOG_INTERVAL_MS = 25;
/**
 * When every worker has been busy this long while others wait, the policies that hold them are moved to the slow
 * lane: long against an evaluation (well under a millisecond), short against a webhook timeout (seconds). Milliseconds.
 */
export const HOLD_LIMIT_MS = 100;
/**
 * Reviews that wait or run at once. At the API server's largest request (3 MiB) this bounds memory only together with
 * {@link MAX_HELD_BYTES}; alone it bounds the time that a new request would wait.
 */
export const MAX_HELD_REVIEWS = 20_000;
/** Bytes of bodies that wait or run at once: room for 36 reviews of the largest size, or 50,000 ordinary ones. */
export const MAX_HELD_BYTES = 256 * 1024 * 1024;
/** How often one review is tried when workers end under it; then it is answered as if its policy had timed out. */
export const MAX_TRIES = 2;
/** How long the pool waits before it replaces a worker that ended before it was ready. Milliseconds. */
export const START_RETRY_MS = 1_000;

/** What the pool needs, and whom it tells. */
export interface WorkerPoolOptions extends CrewOptions {
  readonly log: (entry: LogEntry) => void;
  /** A guest used up its time or its fuel, or ended its worker. */
  readonly onTimeout?: (policy: string) => void;
  /** A worker ended and is replaced. */
  readonly onRestart?: (reason: RestartReason) => void;
  /** A worker could not take up a policy that the loader had found good. */
  readonly onApplyFailure?: (id: string, message: string) => void;
  /**
   * Asks the cluster for a namespace that a policy's selector is about and that workers have not been told of. Workers have
   * its labels when it resolves with nothing; with a text, that says why there are none. Default: nobody can be asked.
   */
  readonly findNamespace?: (name: string) => Promise<string | undefined>;
}

/** Why a worker was replaced. */
export type RestartReason = 'timeout' | 'crash' | 'held' | 'renewed';

/** Threads that evaluate reviews against one policy table. */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #table = new PublishedTable();
  readonly #crew: WorkerCrew;
  readonly #slowLane: SlowLane;
  readonly #usual = new UsualTimes();
  readonly #dispatch: ReviewDispatch;
  #seq = 0;
  #heldReviews = 0;
  #heldBytes = 0;
  #watchdog: NodeJS.Timeout | undefined;
  #watchedAt = 0;
  #stopped = false;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    this.#slowLane = new SlowLane(this.#table, (policy) => options.onTimeout?.(policy));
    this.#crew = new WorkerCrew(options, this.#table, {
      received: (member, message) => this.#receive(member, message),
      failed: (error) =>
        options.log({ level: 'error', message: 'evaluation worker failed', fields: { error: error.message } }),
      exited: (member) => this.#exited(member),
    });
    this.#dispatch = new ReviewDispatch(this.#crew.members, this.#slowLane, this.#usual);
  }

  /** Starts the workers; resolves when each is ready, or when they are ended. */
  async start(): Promise<void> {
    this.#watchdog = setInterval(() => this.#watch(), WATCHDOG_INTERVAL_MS);
    this.#watchdog.unref();
    await this.#crew.start();
  }

  /** Reviews that wait for a worker. */
  get waiting(): number {
    return this.#dispatch.queue.length + this.#slowLane.length;
  }

  /** Reviews that were submitted and are not answered. */
  get held(): number {
    return this.#heldReviews;
  }

  /** Whether there is a policy of that id, be it only on its way. */
  knows(id: string): boolean {
    return this.#table.get(id) !== undefined;
  }

  /** Whether a policy is in the table, and not only on its way there. */
  has(id: string): boolean {
    const entry = this.#table.get(id);
    return entry !== undefined && !('failed' in entry && entry.isLoading === true);
  }

  /**
   * Evaluates a review, by a policy or by all of a bucket (route `admit`) that it is for; `done` is called once. A review of a
   * slow policy that has found no free worker after `patienceMs` is answered as if its policy had timed out.
   * @throws EvaluationError 'overloaded' when too many reviews are held already, 'stopping' after stop().
   */
  submit(route: Route, target: string, body: Uint8Array, patienceMs: number, done: (answer: Answer) => void): void {
    if (this.#stopped) {
      throw new EvaluationError('stopping', 'the policy server is stopping');
    }
    if (this.#heldReviews >= MAX_HELD_REVIEWS || this.#heldBytes + body.length > MAX_HELD_BYTES) {
      throw new EvaluationError('overloaded', `${this.#heldReviews} reviews are waiting already; try again later`);
    }
    this.#heldReviews += 1;
    this.#heldBytes += body.length;
    // Sequence numbers live in a 32-bit cell of shared memory.
    this.#seq = this.#seq === 0x7fff_ffff ? 1 : this.#seq + 1;
    const job = new ReviewJob({ seq: this.#seq, route, target, body, patienceMs, done });
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
      // What an older version did is not held against a new one.
      this.#slowLane.forget(id);
      this.#usual.delete(id);
    }
    for (const entry of [...before, ...change.upserts]) {
      this.#usual.delete(bucketKey(entry?.match?.bucket ?? entry?.id ?? ''));
    }
    return this.#crew.publish(change, numbers);
  }

  /** Tells every worker of namespaces. Reviews that are submitted afterwards are evaluated with what it says. */
  tellNamespaces(change: NamespacesChange): void {
    this.#crew.tellNamespaces(change);
  }

  /** Replaces every worker: what they were started with is no longer good. Reviews under way are evaluated anew. */
  renew(): void {
    for (const member of this.#crew.members) {
      this.#end(member, 'renewed');
    }
    this.#dispatch.soon();
  }

  /** Ends all workers. Reviews still held are not answered. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#watchdog);
    this.#dispatch.stop();
    await this.#crew.stop();
  }

  #receive(member: PoolMember, message: FromWorker): void {
    switch (message.type) {
      case 'answer':
        this.#answered(member, message.answer);
        this.#dispatch.soon();
        break;
      case 'deferred':
        this.#deferred(member.take(message.seq));
        this.#dispatch.soon();
        break;
      case 'namespace-unknown':
        void this.#askForNamespace(member.take(message.seq), message.namespace);
        this.#dispatch.soon();
        break;
      case 'log':
        this.#options.log(message.entry);
        break;
      case 'applied': {
        for (const failure of message.failures) {
          this.#options.onApplyFailure?.(failure.id, failure.message);
        }
        this.#crew.applied(member, message.version);
        break;
      }
      case 'ready':
        this.#crew.ready(member);
        this.#dispatch.soon();
        break;
      default:
        message satisfies never;
    }
  }

  #answered(member: PoolMember, { seq, result, observations: sent, times, evaluationMs }: ReviewAnswer): void {
    // Also of an answer that nobody waits for any more: later ones name them by their numbers.
    const observations = sent.map((one) => member.observations.receive(one));
    const job = member.take(seq);
    if (job === undefined) {
      return;
    }
    if (job.timedOut === null && !job.isDeferred && observations.length > 0) {
      this.#usual.note(job.usualKey, evaluationMs);
    }
    this.#release(job);
    const observed = observations.flatMap((observation, index): ObservedPolicy[] => {
      const ms = times[index] ?? -1;
      if (observation?.outcome === 'timeout') {
        if (ms >= 0 && !job.told.has(observation.policy)) {
          // Cut off by its fuel; one that was not asked is not to blame.
          this.#slowLane.add(observation.policy);
        }
        this.#slowLane.tell(job, observation.policy);
      }
      return observation === null ? [] : [{ observation, evaluationMs: Math.max(ms, 0) }];
    });
    job.answer({ result, observed, evaluationMs });
  }

  /** The review of a bucket is for a slow policy. */
  #deferred(job: ReviewJob | undefined): void {
    if (job !== undefined) {
      job.isDeferred = true;
      this.#dispatch.queue.push(job);
    }
  }

  /** The review is evaluated again when workers know the namespace, or when nobody does. */
  async #askForNamespace(job: ReviewJob | undefined, namespace: string): Promise<void> {
    if (job === undefined) {
      return;
    }
    const late = Promise.withResolvers<string>();
    const patience = setTimeout(
      () => late.resolve(`the API server did not say in time which labels namespace ${namespace} has`),
      job.expiresAt - LAST_CALL_MS - performance.now(),
    );
    const asked = this.#options.findNamespace?.(namespace) ?? Promise.resolve('there is no cluster to ask');
    const problem = await Promise.race([asked, late.promise]).catch(String);
    clearTimeout(patience);
    if (!this.#stopped) {
      // Asked once: a namespace that is gone again is answered by what was said the first time.
      job.namespaceProblem = problem ?? `namespace ${namespace} is gone`;
      this.#dispatch.queue.push(job);
      this.#dispatch.soon();
    }
  }

  #release(job: ReviewJob): void {
    this.#heldReviews -= 1;
    this.#heldBytes -= job.body.length;
  }

  #watch(): void {
    for (const member of this.#crew.members) {
      const { overdue } = member;
      if (overdue !== undefined && !member.isEnding) {
        // Not found: the review was taken back and is evaluated elsewhere, see takeBack().
        const job = member.jobs.find(({ seq }) => seq === overdue.seq);
        if (job !== undefined) {
          this.#slowLane.cutOff(job, overdue);
        }
        this.#end(member, 'timeout');
      }
    }
    const now = performance.now();
    // After a pause of this thread, the answers of workers that look stuck are waiting to be read.
    if (now - this.#watchedAt < 2 * WATCHDOG_INTERVAL_MS) {
      this.#takeBack();
      this.#freeAWorker();
    }
    this.#watchedAt = now;
    for (const job of this.#slowLane.giveUp()) {
      this.#dispatch.queue.push(job);
    }
    this.#dispatch.soon();
  }

  /** Takes back what waits in a worker behind a review that takes unexpectedly long. */
  #takeBack(): void {
    for (const member of this.#crew.members) {
      if (member.jobs.length > 1 && performance.now() - member.busySince > STUCK_MS) {
        this.#dispatch.queue.putBack(member.takeBack());
      }
    }
  }

  /** When every worker has been held for long and others wait: the holders go to the slow lane, and one gives way. */
  #freeAWorker(): void {
    const busy = this.#crew.members.filter(({ jobs, isEnding }) => jobs.length > 0 && !isEnding);
    if (
      this.#crew.members.length < 2 ||
      busy.length < this.#crew.members.length ||
      busy.some((member) => this.#slowLane.heldMs(member) < HOLD_LIMIT_MS)
    ) {
      return;
    }
    const holders = new Set(busy.map((member) => this.#slowLane.policyOf(member)));
    const others = [...this.#dispatch.queue.list(), ...busy.flatMap(({ jobs }) => jobs.slice(1))];
    // A bucket's review is not known to be for one of them; the fast lane finds out.
    if (!others.some(({ isNamed, target, isDeferred }) => (isNamed ? !holders.has(target) : !isDeferred))) {
      return;
    }
    for (const policy of holders) {
      if (policy !== undefined) {
        this.#slowLane.add(policy);
      }
    }
    for (const { runningJob } of busy) {
      if (runningJob !== undefined) {
        // The fast lane need not find out.
        runningJob.isDeferred = true;
      }
    }
    const latest = busy.toSorted((a, b) => b.busySince - a.busySince)[0];
    if (latest !== undefined) {
      this.#end(latest, 'held');
    }
  }

  /** Ends a worker in the middle of its work; its reviews go back to the front of the queue, a new worker starts. */
  #end(member: PoolMember, reason: RestartReason): void {
    if (!member.isEnding) {
      this.#options.onRestart?.(reason);
      this.#dispatch.queue.putBack(member.end());
      this.#crew.replace(member);
    }
  }

  /** A worker ended on its own: out of memory, or a fault of ours. What it was evaluating is tried once more. */
  #exited(member: PoolMember): void {
    if (member.isEnding || this.#stopped) {
      return;
    }
    const job = member.runningJob;
    if (job !== undefined) {
      job.tries += 1;
      if (job.tries >= MAX_TRIES) {
        this.#blame(member, job);
      }
    }
    if (member.isReady) {
      this.#end(member, 'crash');
    } else {
      // One that cannot even start would not start at once again either.
      setTimeout(() => this.#end(member, 'crash'), START_RETRY_MS).unref();
    }
  }

  /** A worker ended more than once under a review: the policy that ran answers no more. */
  #blame(member: PoolMember, job: ReviewJob): void {
    const { running } = member;
    if (job.isNamed) {
      this.#slowLane.cutOff(job);
    } else if (running?.seq === job.seq) {
      this.#slowLane.cutOff(job, { ...running, member: -1 });
    } else {
      // No policy ran: the review itself is too much.
      member.take(job.seq);
      this.#release(job);
      job.answer({ result: { kind: 'failed' }, observed: [], evaluationMs: 0 });
    }
  }
}
