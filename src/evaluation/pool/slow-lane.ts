// Policies that hold workers, and the reviews for them: together they never hold all workers.
import { monotonicNow, type Running } from '../evaluation-protocol.ts';
import type { WorkerThread } from './worker-thread.ts';
import type { PublishedTable } from './published-table.ts';
import type { ReviewJob } from './review-job.ts';
import { SlowPolicies } from './slow-policies.ts';

/**
 * Time reserved for evaluating a parked review without the slow policies: far more than the others usually take.
 * Milliseconds.
 */
export const LAST_CALL_MS = 250;

/** Names of buckets of namespaced policies, see policyMatch. */
const OF_NAMESPACE = /^(?:validating|mutating)\.(?:fail|ignore)\.(?:exact|equivalent)\.namespaced(?:\.|$)/;

/** The slow policies, and the reviews that wait for room to evaluate them. */
export class SlowLane {
  readonly #table: PublishedTable;
  readonly #onTimeout: (policy: string) => void;
  readonly #policies = new SlowPolicies();
  #parked: ReviewJob[] = [];

  /** @param onTimeout called when a policy times out */
  constructor(table: PublishedTable, onTimeout: (policy: string) => void) {
    this.#table = table;
    this.#onTimeout = onTimeout;
  }

  /** Number of parked reviews. */
  get length(): number {
    return this.#parked.length;
  }

  park(job: ReviewJob): void {
    this.#parked.push(job);
  }

  unpark(): ReviewJob | undefined {
    return this.#parked.shift();
  }

  /** Marks a policy as slow. */
  add(policy: string): void {
    this.#policies.add(policy);
  }

  /** Forgets a policy that changed. */
  forget(policy: string): void {
    this.#policies.delete(policy);
  }

  /** Whether a review is known to need a slow policy: it names one, or a worker deferred it. */
  isFor({ target, timedOut, isNamed, isDeferred }: ReviewJob): boolean {
    return this.#policies.size > 0 && (isNamed || isDeferred) && this.slowOf(target, timedOut) !== null;
  }

  /** The slow policies of a bucket that are not answered as timed out yet; null: none. */
  slowOf(bucket: string, timedOut: readonly string[] | null): string[] | null {
    return this.#policies.those((id) => this.#table.isIn(id, bucket) && timedOut?.includes(id) !== true);
  }

  /** Whether a worker is, or will be, busy with a slow policy. */
  holds(worker: WorkerThread): boolean {
    if (this.#policies.size === 0) {
      return false;
    }
    const running = this.policyOf(worker);
    return worker.jobs.some((job) => this.isFor(job)) || (running !== undefined && this.#policies.has(running));
  }

  /** Whether there is room for one more review of a slow policy. */
  hasRoom(workers: readonly WorkerThread[]): boolean {
    const running = workers.filter((worker) => this.holds(worker)).length;
    // A worker that is being replaced does not count as free.
    const able = workers.filter(({ isAble }) => isAble).length;
    return running < (workers.length === 1 ? 1 : able - 1);
  }

  /** The policy that runs in a worker, if known. */
  policyOf(worker: WorkerThread): string | undefined {
    const job = worker.runningJob;
    const { running } = worker;
    const policy = running?.seq === job?.seq ? this.#table.policyOf(running?.policy ?? 0) : undefined;
    return policy ?? (job?.isNamed === true ? job.target : undefined);
  }

  /** How long one policy, or the policies of one namespace together, have held a worker. Milliseconds. */
  heldMs(worker: WorkerThread): number {
    const job = worker.runningJob;
    if (job?.isNamed !== false) {
      return performance.now() - worker.busySince;
    }
    const { running } = worker;
    if (running?.seq !== job.seq) {
      return 0;
    }
    // Many quick policies in a row are not slow; those of one namespace count together, since its owner chooses their number.
    return OF_NAMESPACE.test(job.target) ? performance.now() - worker.busySince : monotonicNow() - running.since;
  }

  /**
   * Marks the policy, or member of a group, that ran as timed out for this review; else the policy that the review names. Does
   * nothing when the policy was removed.
   */
  cutOff(job: ReviewJob, running?: Pick<Running, 'member' | 'policy'>): void {
    const policy = job.isNamed ? job.target : this.#table.policyOf(running?.policy ?? 0);
    if (policy !== undefined) {
      const culprit = this.#table.memberOf(policy, running?.member ?? -1);
      job.without([culprit === undefined ? policy : `${policy}/${culprit}`]);
      this.#policies.add(policy);
      this.report(job, policy);
    }
  }

  /** Reports the timeout of a policy, once for each review. */
  report(job: ReviewJob, policy: string): void {
    if (!job.reported.has(policy)) {
      job.reported.add(policy);
      this.#onTimeout(policy);
    }
  }

  /** Parked reviews whose time is over, with the slow policies marked as timed out. */
  giveUp(): readonly ReviewJob[] {
    const now = performance.now();
    const isOver = ({ expiresAt }: ReviewJob): boolean => expiresAt - LAST_CALL_MS <= now;
    const expired = this.#parked.filter(isOver);
    if (expired.length > 0) {
      this.#parked = this.#parked.filter((job) => !isOver(job));
    }
    for (const job of expired) {
      // The other policies of a bucket still give their verdicts; timeouts are reported with the answer.
      job.without(this.slowOf(job.target, job.timedOut) ?? []);
    }
    return expired;
  }
}
