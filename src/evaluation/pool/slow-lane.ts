// Owners whose policies hold workers, and the reviews for them: none holds more than its share of the workers, and together
// they never hold all. A policy of the cluster is restricted only while reviews of others come, unless it held up some. Those of
// namespaces run in background workers only. A namespace whose policies are untried holds no more than its share either.
import { isNamespaceOwner } from '../../engine/definition/index.ts';
import type { HeldWorker, Running } from '../evaluation-protocol.ts';
import { EndingThreads } from './ending-threads.ts';
import type { HeldTimes } from './held-times.ts';
import { ParkedReviews } from './parked-reviews.ts';
import type { PublishedTable } from './published-table.ts';
import type { ReviewJob } from './review-job.ts';
import { SlowOwners } from './slow-owners.ts';
import { SpentTimes } from './spent-times.ts';
import type { WorkerThread } from './worker-thread.ts';

/**
 * Time reserved for evaluating a parked review without the slow policies: far more than the others usually take.
 * Milliseconds.
 */
export const LAST_CALL_MS = 250;
/** Of the workers, for the reviews of one slow owner; at least one worker. */
const OWNER_SHARE = 0.5;
/**
 * Of the time of these workers, for the long reviews of one owner that follow one another. An owner that takes more is slow; a
 * namespace then waits until it has this share again.
 */
const TIME_SHARE = 0.5;
/** Time without waiting for the host that a slow namespace may take at once beyond it. Milliseconds. */
const MAX_SPENT_MS = 500;
/**
 * An owner whose policies hold its share of the workers for longer than {@link RESTRICT_MS} gets no more for
 * {@link FULL_SHARE_MS}: its other reviews wait for them instead of taking the workers that are left. Milliseconds.
 */
const RESTRICT_MS = 100;
const FULL_SHARE_MS = 1_000;
/** How long after the last review of others policies of the cluster still leave a worker to them. Milliseconds. */
const OTHERS_MS = 1_000;

/** Names of shared buckets of namespaced policies, see policyMatch. */
const OF_NAMESPACE = /^(?:validating|mutating)\.(?:fail|ignore)\.(?:exact|equivalent)\.namespaced(?:\.|$)/;

/** The slow owners, and the reviews that wait for room to evaluate them. */
export class SlowLane {
  readonly #table: PublishedTable;
  readonly #onTimeout: (policy: string) => void;
  readonly #owners = new SlowOwners();
  readonly #ending: EndingThreads;
  /** Time that long reviews of owners held workers. */
  readonly #held: SpentTimes;
  /** Of that, the time in which their policies did not wait for the host. */
  readonly #worked: SpentTimes;
  readonly #parked = new ParkedReviews();
  readonly #lastCallMs: number;
  /** When a review that held no worker for long was answered last. */
  #othersAt = -Infinity;

  /**
   * @param onTimeout called when a policy times out
   * @param size number of workers
   * @param ending threads that were ended and still run
   * @param lastCallMs see {@link LAST_CALL_MS}
   */
  constructor(
    table: PublishedTable,
    onTimeout: (policy: string) => void,
    size: number,
    ending = new EndingThreads(),
    lastCallMs = LAST_CALL_MS,
  ) {
    this.#table = table;
    this.#ending = ending;
    this.#lastCallMs = lastCallMs;
    this.#onTimeout = onTimeout;
    this.#held = new SpentTimes(shareOfOwner(size) * TIME_SHARE, RESTRICT_MS);
    this.#worked = new SpentTimes(shareOfOwner(size) * TIME_SHARE, MAX_SPENT_MS);
  }

  /** Number of parked reviews. */
  get length(): number {
    return this.#parked.length;
  }

  /** Number of slow owners. */
  get owners(): number {
    return this.#owners.those(() => true)?.length ?? 0;
  }

  park(job: ReviewJob): void {
    this.#parked.push(job.owner ?? '', job);
  }

  /** The next parked review that a worker may take. */
  unpark(worker: WorkerThread, workers: readonly WorkerThread[]): ReviewJob | undefined {
    return this.#parked.take((owner) => this.mayTake(worker, workers, owner));
  }

  /** Marks the owner of a policy as slow. */
  add(policy: string): void {
    this.#owners.add(this.#table.ownerOf(policy));
  }

  /** Forgets a policy that changed. A namespace stays slow, or each change of one of its policies would give it all workers. */
  forget(policy: string): void {
    this.#owners.delete(policy);
  }

  /** Whether a review needs a policy of a slow owner: it names one, or a worker deferred it. */
  isFor(job: ReviewJob): boolean {
    return job.owner !== undefined && this.slowOf(job) !== null;
  }

  /** The slow owners that a review may need, and that are not answered as timed out yet; null: none. */
  slowOf(job: ReviewJob): string[] | null {
    const { target, owner = this.#table.ownerOfBucket(target), isNamed, isDeferred, timedOut } = job;
    if ((this.#owners.size === 0 && !isDeferred) || (isNamed && timedOut?.includes(target) === true)) {
      return null;
    }
    const isOpen = (one: string): boolean => timedOut?.includes(one) !== true;
    if (job.together !== undefined) {
      const owners = new Set(job.together.map((policy) => this.#table.ownerOf(policy)));
      return this.#owners.those((one) => isOpen(one) && owners.has(one));
    }
    if (owner !== undefined && (isNamed || isNamespaceOwner(owner))) {
      return (isDeferred || this.#owners.has(owner)) && isOpen(owner) ? [owner] : null;
    }
    const isOfNamespaces = OF_NAMESPACE.test(target);
    return this.#owners.those(
      (one) => isOpen(one) && (isNamespaceOwner(one) ? isOfNamespaces : this.#table.isIn(one, target)),
    );
  }

  /** Whether a worker is, or will be, busy with a slow owner's policy. */
  holds(worker: WorkerThread): boolean {
    const owner = this.#owners.size === 0 ? undefined : this.ownerIn(worker);
    return worker.jobs.some((job) => this.isFor(job)) || (owner !== undefined && this.#owners.has(owner));
  }

  /** Whether a worker without reviews may take one more of an owner whose policies are slow, or may be. */
  mayTake(worker: WorkerThread, workers: readonly WorkerThread[], owner: string | undefined): boolean {
    // Its policies are untried: what slow owners spend does not count.
    const isSlow = owner === undefined || this.#owners.has(owner);
    if (isSlow && owner !== undefined && isNamespaceOwner(owner)) {
      const isForIt = worker.isBackground || workers.length === 1;
      if (!isForIt || this.#worked.excessMs(owner) > 0) {
        return false;
      }
    }
    const slow = workers.filter((worker) => this.holds(worker));
    const ended = owner === undefined ? 0 : this.#ending.heldBy(owner);
    if (workers.length === 1) {
      return slow.length === 0 && ended === 0;
    }
    const own = workers.filter((worker) => worker.jobs.length > 0 && this.ownerIn(worker) === owner).length;
    if (own + ended >= shareOfOwner(workers.length)) {
      return false;
    }
    // Several owners together get no more threads than there are workers.
    if (isSlow && this.#ending.size >= workers.length) {
      return false;
    }
    // Slow owners leave a worker to all others, whose policies may be untried. One that is being replaced does not count.
    const able = workers.filter(({ isAble }) => isAble).length;
    return !isSlow || slow.length < able - 1;
  }

  /** Restricts owners whose policies hold their share of the workers for longer than reviews usually take. */
  restrict(workers: readonly WorkerThread[], held: HeldTimes): void {
    const owners = workers.flatMap((worker) => (held.of(worker) > RESTRICT_MS ? (this.ownerIn(worker) ?? []) : []));
    for (const owner of new Set(owners)) {
      if (this.#mustShare(owner) && owners.filter((one) => one === owner).length >= shareOfOwner(workers.length)) {
        this.#owners.add(owner, FULL_SHARE_MS);
      }
    }
  }

  /** Takes note of an answered review, and of the worker that it held, if it did. */
  answered(job: ReviewJob, held: HeldWorker | undefined): void {
    if (held !== undefined) {
      this.account(held);
    } else if (!this.isFor(job)) {
      this.#othersAt = performance.now();
    }
  }

  /**
   * Restricts an owner whose reviews, one after the other, hold workers for longer than they usually do. Not processor time
   * counts here: where the machine or a limit gives little of it, they still hold all workers.
   */
  account({ policy, ms, waitedMs }: HeldWorker): void {
    const name = this.#table.policyOf(policy);
    if (name === undefined) {
      return;
    }
    const owner = this.#table.ownerOf(name);
    this.#held.add(owner, ms);
    this.#worked.add(owner, ms - waitedMs);
    const slowMs = this.#held.excessMs(owner);
    if (slowMs === 0 || !this.#mustShare(owner)) {
      return;
    }
    this.#owners.add(owner, isNamespaceOwner(owner) ? Math.max(slowMs, FULL_SHARE_MS) : FULL_SHARE_MS);
  }

  /** Whether an owner must leave workers to others: a namespace always, a policy of the cluster while they come. */
  #mustShare(owner: string): boolean {
    return isNamespaceOwner(owner) || performance.now() - this.#othersAt <= OTHERS_MS;
  }

  /** The policy that runs in a worker, if known. */
  policyOf(worker: WorkerThread): string | undefined {
    const job = worker.runningJob;
    const { running } = worker;
    const policy = running?.seq === job?.seq ? this.#table.policyOf(running?.policy ?? 0) : undefined;
    return policy ?? (job?.isNamed === true ? job.target : undefined);
  }

  /** The owner that a worker's review is for, or whose policy runs in it, if known. */
  ownerIn(worker: WorkerThread): string | undefined {
    const policy = this.policyOf(worker);
    return worker.runningJob?.owner ?? (policy === undefined ? undefined : this.#table.ownerOf(policy));
  }

  /** What holds a worker: a review that names its policy or is for one namespace, else the policy that runs. */
  heldBy(worker: WorkerThread): string | undefined {
    const job = worker.runningJob;
    if (job === undefined || job.isNamed || OF_NAMESPACE.test(job.target)) {
      return job && `${job.seq}`;
    }
    const { running } = worker;
    // Many quick policies in a row are not slow; those of one namespace count together, since its owner chooses their number.
    return running?.seq === job.seq ? `${job.seq} ${running.policy} ${running.since}` : undefined;
  }

  /**
   * Marks the policy, or member of a group, that ran as timed out for this review; else the policy that the review names.
   * Returns the policy; undefined when it was removed.
   */
  cutOff(job: ReviewJob, running?: Pick<Running, 'member' | 'policy'>): string | undefined {
    const policy = job.isNamed ? job.target : this.#table.policyOf(running?.policy ?? 0);
    if (policy !== undefined) {
      const culprit = this.#table.memberOf(policy, running?.member ?? -1);
      job.without([culprit === undefined ? policy : `${policy}/${culprit}`]);
      this.report(job, policy);
    }
    return policy;
  }

  /** Reports the timeout of a policy, once for each review. */
  report(job: ReviewJob, policy: string): void {
    if (!job.reported.has(policy)) {
      job.reported.add(policy);
      this.#onTimeout(policy);
    }
  }

  /** Owners of threads that do not end stay slow until these exit. */
  keepStuck(): void {
    for (const owner of this.#ending.stuckOwners()) {
      this.#owners.add(owner, FULL_SHARE_MS);
    }
  }

  /**
   * Parked reviews whose time is over, and those of owners whose threads do not end, with the policies of slow owners marked as
   * timed out.
   */
  giveUp(): readonly ReviewJob[] {
    if (this.#parked.length === 0) {
      return [];
    }
    const now = performance.now();
    const stuck = new Set<string | undefined>(this.#ending.stuckOwners());
    const expired = this.#parked.remove(
      ({ expiresAt, owner }) => expiresAt - this.#lastCallMs <= now || stuck.has(owner),
    );
    for (const job of expired) {
      // The other policies of a bucket still give their verdicts; timeouts are reported with the answer.
      job.without(job.isNamed ? [job.target] : (this.slowOf(job) ?? []));
    }
    return expired;
  }
}

/** Workers that the reviews of one slow owner may hold. */
export function shareOfOwner(workers: number): number {
  return Math.max(1, Math.floor(workers * OWNER_SHARE));
}
