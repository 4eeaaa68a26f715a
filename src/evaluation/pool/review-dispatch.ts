// Assigns waiting reviews to workers.
import { LONG_REVIEW_MS, type ReviewTerms, MONOTONIC_OFFSET } from '../evaluation-protocol.ts';
import { isNamespaceOwner } from '../../engine/definition/index.ts';
import type { WorkerThread } from './worker-thread.ts';
import type { ReviewJob } from './review-job.ts';
import { ReviewQueue } from './review-queue.ts';
import type { SlowLane } from './slow-lane.ts';
import type { UsualTimes } from './usual-times.ts';

/**
 * Expected work posted to a worker at once, at least: enough that a message carries several reviews under load, little enough that no
 * review waits noticeably behind another. A review that takes longer, or is new, is posted alone. Milliseconds.
 */
const WORK_AHEAD_MS = 0.5;
/**
 * At most, where this thread is so busy that workers would wait longer for their next review. A review behind one that takes long is
 * withdrawn. Milliseconds.
 */
const MAX_WORK_AHEAD_MS = LONG_REVIEW_MS;
/**
 * Work that an awake worker gets before another one is woken: waking a thread costs as much as an evaluation or two.
 * Milliseconds.
 */
const WORTH_WAKING_MS = 0.1;
/** Most reviews posted to a worker at once. */
const REVIEWS_AHEAD = 32;

/** Posts waiting reviews to the workers of a pool. */
export class ReviewDispatch {
  /** Waiting reviews, without those in the slow lane. */
  readonly queue: ReviewQueue = new ReviewQueue();
  readonly #workers: readonly WorkerThread[];
  readonly #slowLane: SlowLane;
  readonly #usual: UsualTimes;
  #scheduled: NodeJS.Immediate | undefined;
  /** The end of the last dispatch, if reviews still wait for workers. */
  #leftAt: number | undefined;
  /** Expected work for a worker until this thread comes to the next reviews. Milliseconds. */
  #workAheadMs = WORK_AHEAD_MS;

  /** @param workers the pool's current workers; changes as they are replaced */
  constructor(workers: readonly WorkerThread[], slowLane: SlowLane, usual: UsualTimes) {
    this.#workers = workers;
    this.#slowLane = slowLane;
    this.#usual = usual;
  }

  /** Posts nothing more. */
  stop(): void {
    clearImmediate(this.#scheduled);
  }

  /** Dispatches after this turn of the event loop, so that a message carries all reviews that arrived in it. */
  soon(): void {
    this.#scheduled ??= setImmediate(() => {
      this.#scheduled = undefined;
      this.#dispatch();
    });
  }

  /**
   * Fills awake workers first, then wakes others, each up to {@link WORTH_WAKING_MS}; then posts one review to each in turn up
   * to the limits.
   */
  #dispatch(): void {
    this.#workAheadMs = this.#workUntilNext(performance.now());
    this.#unpark();
    for (const isAwake of [true, false]) {
      for (const worker of this.#workers) {
        if (worker.jobs.length > 0 === isAwake && this.#mayTake(worker)) {
          this.#fill(worker, WORTH_WAKING_MS);
        }
      }
    }
    for (let ahead = 0; ahead < REVIEWS_AHEAD && this.queue.length > 0; ahead += 1) {
      for (const worker of this.#workers) {
        const job = worker.jobs.length <= ahead && this.#mayTake(worker) ? this.#next(worker) : undefined;
        if (job !== undefined) {
          this.#hand(worker, job);
        }
      }
    }
    // A review that was parked just now may be for another worker.
    this.#unpark();
    for (const worker of this.#workers) {
      worker.flush();
    }
    this.#leftAt = this.queue.length > 0 ? performance.now() : undefined;
  }

  /** While reviews are left, the time between two dispatches is the time for which a worker needs work. */
  #workUntilNext(now: number): number {
    const turnMs = this.#leftAt === undefined ? 0 : now - this.#leftAt;
    return Math.min(Math.max(turnMs, WORK_AHEAD_MS), MAX_WORK_AHEAD_MS);
  }

  #mayTake(worker: WorkerThread): boolean {
    const { isAble, jobs, busySince } = worker;
    // It gets no more, and its waiting reviews are withdrawn.
    const isStuck = jobs.length > 0 && (performance.now() - busySince > LONG_REVIEW_MS || this.#slowLane.holds(worker));
    return isAble && !isStuck && worker.workAheadMs < this.#workAheadMs;
  }

  /** Posts waiting reviews to a worker until it has this much work. */
  #fill(worker: WorkerThread, ms: number): void {
    while (worker.jobs.length < REVIEWS_AHEAD && worker.workAheadMs < ms) {
      const job = this.#next(worker);
      if (job === undefined) {
        return;
      }
      this.#hand(worker, job);
    }
  }

  /** The first waiting review that the worker may take; parks those for a full slow lane. */
  #next(worker: WorkerThread): ReviewJob | undefined {
    for (let job = this.queue.first; job !== undefined; job = this.queue.first) {
      job.expectedMs = this.#usual.get(job.usualKey) ?? this.#workAheadMs;
      if (job.isNamed && job.timedOut === null && job.expiresAt <= performance.now()) {
        // The client has given up. Workers check the deadline of a bucket's review.
        job.without([job.target]);
        this.#slowLane.report(job, job.target);
      }
      const isSlow = this.#slowLane.isFor(job);
      if (!isSlow && worker.jobs.length > 0 && job.expectedMs >= this.#workAheadMs) {
        return undefined;
      }
      this.queue.advance();
      if (!isSlow || (worker.jobs.length === 0 && this.#slowLane.mayTake(worker, this.#workers, job.owner))) {
        return job;
      }
      this.#slowLane.park(job);
    }
    return undefined;
  }

  #hand(worker: WorkerThread, job: ReviewJob): void {
    worker.hand(job, this.#termsOf(job));
  }

  #termsOf(job: ReviewJob): ReviewTerms {
    const { expiresAt, timedOut, failedLookups } = job;
    return {
      timedOut,
      expiresAt: expiresAt + MONOTONIC_OFFSET,
      slow: this.#slowFor(job),
      failedLookups: failedLookups.length === 0 ? null : failedLookups,
    };
  }

  /** See ReviewTerms. With one worker, there is none to keep free from untried policies. */
  #slowFor(job: ReviewJob): readonly string[] | null {
    const untried = this.#workers.length > 1 ? [] : null;
    if (job.isDeferred) {
      return null;
    }
    if (job.isNamed) {
      // One that names a slow policy went to the slow lane at once. Only a namespace has many policies.
      const mayWait = isNamespaceOwner(job.owner ?? '') && job.timedOut === null && !this.#slowLane.isFor(job);
      return mayWait ? untried : null;
    }
    return this.#slowLane.slowOf(job) ?? untried;
  }

  #unpark(): void {
    // A single worker is for the others first.
    if (this.#slowLane.length === 0 || (this.#workers.length === 1 && this.queue.length > 0)) {
      return;
    }
    for (const worker of this.#workers) {
      const job = worker.isAble && worker.jobs.length === 0 ? this.#slowLane.unpark(worker, this.#workers) : undefined;
      if (job !== undefined) {
        this.#hand(worker, job);
      }
    }
  }
}
