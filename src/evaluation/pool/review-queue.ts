import type { ReviewJob } from './review-job.ts';

/** Jobs at the front that were taken and are still in the list, before it is copied. */
const MAX_TAKEN = 1024;

/** Waiting reviews in order. Taking one takes constant time. */
export class ReviewQueue {
  #jobs: ReviewJob[] = [];
  #head = 0;

  get length(): number {
    return this.#jobs.length - this.#head;
  }

  /** The one at the front. */
  get first(): ReviewJob | undefined {
    return this.#jobs[this.#head];
  }

  /** In their order. */
  list(): readonly ReviewJob[] {
    return this.#jobs.slice(this.#head);
  }

  push(job: ReviewJob): void {
    this.#jobs.push(job);
  }

  /** Puts some before all others. */
  putBack(jobs: readonly ReviewJob[]): void {
    this.#jobs.splice(this.#head, 0, ...jobs);
  }

  /** Takes the one at the front away. */
  advance(): void {
    this.#head += 1;
    if (this.#head === this.#jobs.length) {
      this.#jobs = [];
      this.#head = 0;
    } else if (this.#head > MAX_TAKEN && this.#head * 2 > this.#jobs.length) {
      this.#jobs = this.#jobs.slice(this.#head);
      this.#head = 0;
    }
  }
}
