// Policies that hold workers, and the reviews that wait because of them: they never have all workers.
import { monotonicNow, type Running } from '../evaluation-protocol.ts';
import type { PoolMember } from './pool-member.ts';
import type { PublishedTable } from './published-table.ts';
import type { ReviewJob } from './review-job.ts';
import { SlowPolicies } from './slow-policies.ts';

/**
 * Kept of a bucket's review that waits in the slow lane, for answering it without the slow policies: as long as all others
 * usually take by far. Milliseconds.
 */
export const LAST_CALL_MS = 250;

/** Buckets of policies of namespaces, see policyMatch: each review is for those of one. */
const OF_NAMESPACE = /^(?:validating|mutating)\.(?:fail|ignore)\.(?:exact|equivalent)\.namespaced(?:\.|$)/;

/** Knows which policies are slow, and keeps reviews that have to wait for them. */
export class SlowLane {
  readonly #table: PublishedTable;
  readonly #onTimeout: (policy: string) => void;
  readonly #policies = new SlowPolicies();
  #parked: ReviewJob[] = [];

  /** @param onTimeout a policy was cut off */
  constructor(table: PublishedTable, onTimeout: (policy: string) => void) {
    this.#table = table;
    this.#onTimeout = onTimeout;
  }

  /** Reviews that wait in it. */
  get length(): number {
    return this.#parked.length;
  }

  park(job: ReviewJob): void {
    this.#parked.push(job);
  }

  unpark(): ReviewJob | undefined {
    return this.#parked.shift();
  }

  /** A policy held a worker for long. */
  add(policy: string): void {
    this.#policies.add(policy);
  }

  /** A policy is another one now. */
  forget(policy: string): void {
    this.#policies.delete(policy);
  }

  /** Whether a review belongs here: it names a slow policy, or the fast lane found out that it is for one of its bucket. */
  isFor({ target, timedOut, isNamed, isDeferred }: ReviewJob): boolean {
    return this.#policies.size > 0 && (isNamed || isDeferred) && this.slowOf(target, timedOut) !== null;
  }

  /** The slow policies of a bucket but for those that are answered already; null: none. */
  slowOf(bucket: string, timedOut: readonly string[] | null): string[] | null {
    return this.#policies.those((id) => this.#table.isIn(id, bucket) && timedOut?.includes(id) !== true);
  }

  /** Whether a worker is, or will be, busy with a slow policy. */
  holds(member: PoolMember): boolean {
    if (this.#policies.size === 0) {
      return false;
    }
    const running = this.policyOf(member);
    return member.jobs.some((job) => this.isFor(job)) || (running !== undefined && this.#policies.has(running));
  }

  /** Whether there is room for one more review of a slow policy. */
  hasRoom(members: readonly PoolMember[]): boolean {
    const running = members.filter((member) => this.holds(member)).length;
    // A worker that is being replaced is not the one that is left free.
    const able = members.filter(({ isAble }) => isAble).length;
    return running < (members.length === 1 ? 1 : able - 1);
  }

  /** The policy that a worker is on, as far as that can be told. */
  policyOf(member: PoolMember): string | undefined {
    const job = member.runningJob;
    const { running } = member;
    const policy = running?.seq === job?.seq ? this.#table.policyOf(running?.policy ?? 0) : undefined;
    return policy ?? (job?.isNamed === true ? job.target : undefined);
  }

  /** How long one and the same policy has held a worker, or all policies of one namespace together. Milliseconds. */
  heldMs(member: PoolMember): number {
    const job = member.runningJob;
    if (job?.isNamed !== false) {
      return performance.now() - member.busySince;
    }
    const { running } = member;
    if (running?.seq !== job.seq) {
      return 0;
    }
    // Many quick policies one after the other may take as long as a slow one, and none of them is to blame; but whose
    // namespace it is may have as many as they like.
    return OF_NAMESPACE.test(job.target) ? performance.now() - member.busySince : monotonicNow() - running.since;
  }

  /**
   * Notes whom a review is to be answered without: the policy, or member of a group, that ran; without one the policy that the
   * review names. Nobody, when the policy was removed meanwhile.
   */
  cutOff(job: ReviewJob, running?: Pick<Running, 'member' | 'policy'>): void {
    const policy = job.isNamed ? job.target : this.#table.policyOf(running?.policy ?? 0);
    if (policy !== undefined) {
      const culprit = this.#table.memberOf(policy, running?.member ?? -1);
      job.without([culprit === undefined ? policy : `${policy}/${culprit}`]);
      this.#policies.add(policy);
      this.tell(job, policy);
    }
  }

  /** Tells, once for each review, that a policy was cut off. */
  tell(job: ReviewJob, policy: string): void {
    if (!job.told.has(policy)) {
      job.told.add(policy);
      this.#onTimeout(policy);
    }
  }

  /** Reviews that have waited for as long as anybody waits: to be answered as if the slow policies had timed out. */
  giveUp(): readonly ReviewJob[] {
    const now = performance.now();
    const isOver = ({ expiresAt }: ReviewJob): boolean => expiresAt - LAST_CALL_MS <= now;
    const expired = this.#parked.filter(isOver);
    if (expired.length > 0) {
      this.#parked = this.#parked.filter((job) => !isOver(job));
    }
    for (const job of expired) {
      // The other policies of a bucket still give their verdicts. Who was cut off is reported with the answer.
      job.without(this.slowOf(job.target, job.timedOut) ?? []);
    }
    return expired;
  }
}
