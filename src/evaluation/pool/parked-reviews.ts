import type { ReviewJob } from './review-job.ts';
import { ReviewQueue } from './review-queue.ts';

/** Reviews that wait for room in the slow lane: a queue for each owner, and the owners in turn. */
export class ParkedReviews {
  /** The owner whose turn is next comes first. None is empty. */
  #queues = new Map<string, ReviewQueue>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(owner: string, job: ReviewJob): void {
    const queue = this.#queues.get(owner) ?? new ReviewQueue();
    this.#queues.set(owner, queue);
    queue.push(job);
    this.#length += 1;
  }

  /** Takes the first review of the next owner that has room. */
  take(hasRoom: (owner: string) => boolean): ReviewJob | undefined {
    for (const [owner, queue] of this.#queues) {
      const job = hasRoom(owner) ? queue.first : undefined;
      if (job !== undefined) {
        queue.advance();
        this.#length -= 1;
        this.#queues.delete(owner);
        if (queue.length > 0) {
          this.#queues.set(owner, queue);
        }
        return job;
      }
    }
    return undefined;
  }

  /** Removes all reviews that pass a test. */
  remove(isOver: (job: ReviewJob) => boolean): ReviewJob[] {
    const all = [...this.#queues].flatMap(([owner, queue]) => queue.list().map((job) => ({ owner, job })));
    const { removed = [], kept = [] } = Object.groupBy(all, ({ job }) => (isOver(job) ? 'removed' : 'kept'));
    if (removed.length > 0) {
      this.#queues = new Map();
      this.#length = 0;
      for (const { owner, job } of kept) {
        this.push(owner, job);
      }
    }
    return removed.map(({ job }) => job);
  }
}
