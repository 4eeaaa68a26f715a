// Which worker gets which review, and when.
import { type ReviewTerms, MONOTONIC_OFFSET } from '../evaluation-protocol.ts';
import type { PoolMember } from './pool-member.ts';
import type { ReviewJob } from './review-job.ts';
import { ReviewQueue } from './review-queue.ts';
import type { SlowLane } from './slow-lane.ts';
import type { UsualTimes } from './usual-times.ts';

/**
 * Work handed to a worker at once, by the time that its policies took before: enough that a message carries several
 * reviews under load and no worker waits for its next one, little enough that nobody notices who is in front. A policy
 * that takes longer, or is not known yet, is handed out alone. Milliseconds.
 */
export const WORK_AHEAD_MS = 0.5;
/**
 * A worker that has less than this before it is given more work before another one is woken: waking a thread takes as
 * long as an evaluation or two, on both sides. Milliseconds.
 */
export const WORTH_WAKING_MS = 0.1;
/** A worker that is on one review for longer than this gets no more, and gives back what it has behind it. Milliseconds. */
export const STUCK_MS = 20;
/** Reviews handed to a worker at once, however quick their policies are. */
export const REVIEWS_AHEAD = 8;
/** Hands the reviews that wait to the workers of a pool. */
export class ReviewDispatch {
  /** Reviews that wait, but for those in the slow lane. */
  readonly queue: ReviewQueue = new ReviewQueue();
  readonly #members: readonly PoolMember[];
  readonly #slowLane: SlowLane;
  readonly #usual: UsualTimes;
  #scheduled: NodeJS.Immediate | undefined;

  /** `members`: those of the pool at any time. */
  constructor(members: readonly PoolMember[], slowLane: SlowLane, usual: UsualTimes) {
    this.#members = members;
    this.#slowLane = slowLane;
    this.#usual = usual;
  }

  /** Hands out nothing any more that is not handed out already. */
  stop(): void {
    clearImmediate(this.#scheduled);
  }

  /** Dispatches once all that has arrived by now is in the queue, so that a message carries as many reviews as it may. */
  soon(): void {
    this.#scheduled ??= setImmediate(() => {
      this.#scheduled = undefined;
      this.#dispatch();
    });
  }

  /**
   * Hands waiting reviews to workers: first so much to those that are awake, and then to the others, that waking the next
   * one is worth it; then one to each in turn, until each has as much as it may be ahead.
   */
  #dispatch(): void {
    this.#unpark();
    for (const isAwake of [true, false]) {
      for (const member of this.#members) {
        if (member.jobs.length > 0 === isAwake && this.#mayTake(member)) {
          this.#fill(member, WORTH_WAKING_MS);
        }
      }
    }
    for (let ahead = 0; ahead < REVIEWS_AHEAD && this.queue.length > 0; ahead += 1) {
      for (const member of this.#members) {
        const job = member.jobs.length <= ahead && this.#mayTake(member) ? this.#next(member) : undefined;
        if (job !== undefined) {
          this.#hand(member, job);
        }
      }
    }
    for (const member of this.#members) {
      member.flush();
    }
  }

  #mayTake(member: PoolMember): boolean {
    const { isAble, jobs, busySince } = member;
    const isStuck = jobs.length > 0 && (performance.now() - busySince > STUCK_MS || this.#slowLane.holds(member));
    return isAble && !isStuck && member.workAheadMs < WORK_AHEAD_MS;
  }

  /** Hands waiting reviews to a worker until it has this much before it. */
  #fill(member: PoolMember, ms: number): void {
    while (member.jobs.length < REVIEWS_AHEAD && member.workAheadMs < ms) {
      const job = this.#next(member);
      if (job === undefined) {
        return;
      }
      this.#hand(member, job);
    }
  }

  /** The first waiting review that the worker may take now; those of the slow lane are put aside while it is full. */
  #next(member: PoolMember): ReviewJob | undefined {
    for (let job = this.queue.first; job !== undefined; job = this.queue.first) {
      job.expectedMs = this.#usual.get(job.usualKey) ?? WORK_AHEAD_MS;
      if (job.isNamed && job.timedOut === null && job.expiresAt <= performance.now()) {
        // Nobody waits for a verdict any more. Workers see to the time of a bucket's review.
        job.without([job.target]);
        this.#slowLane.tell(job, job.target);
      }
      const isSlow = this.#slowLane.isFor(job);
      if (!isSlow && member.jobs.length > 0 && job.expectedMs >= WORK_AHEAD_MS) {
        return undefined;
      }
      this.queue.advance();
      if (!isSlow || (member.jobs.length === 0 && this.#slowLane.hasRoom(this.#members))) {
        return job;
      }
      this.#slowLane.park(job);
    }
    return undefined;
  }

  #hand(member: PoolMember, job: ReviewJob): void {
    member.hand(job, this.#termsOf(job));
  }

  #termsOf({ target, expiresAt, timedOut, isNamed, isDeferred, namespaceProblem }: ReviewJob): ReviewTerms {
    return {
      timedOut,
      expiresAt: expiresAt + MONOTONIC_OFFSET,
      // A review that names its policy was in the slow lane at once.
      slow: isNamed || isDeferred ? null : this.#slowLane.slowOf(target, timedOut),
      namespaceProblem,
    };
  }

  #unpark(): void {
    while (this.#slowLane.length > 0 && this.#slowLane.hasRoom(this.#members)) {
      const idle = this.#members.find(({ isAble, jobs }) => isAble && jobs.length === 0);
      const job = idle && this.#slowLane.unpark();
      if (idle === undefined || job === undefined) {
        return;
      }
      this.#hand(idle, job);
    }
  }
}
