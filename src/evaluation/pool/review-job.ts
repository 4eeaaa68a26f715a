// A review on its way through the worker pool.
import type { MonitoredVerdict, Observation } from '../../engine/index.ts';
import type { WorkerRoute, ReviewInput, ReviewResult } from '../evaluation-protocol.ts';
import type { FailedLookup } from '../watched-objects.ts';

/** The answer to one review. Times in milliseconds. */
export interface PoolAnswer {
  readonly result: ReviewResult;
  /** One for each evaluation of a policy; equal observations of a worker are one object. */
  readonly observed: readonly ObservedPolicy[];
  /** What policies in monitor mode would have rejected or changed; absent without any. */
  readonly monitored?: readonly MonitoredVerdict[];
  /** Exceptions that the request uses, by `metadata.uid`; absent without any. */
  readonly uses?: readonly string[];
  /** Time spent on the review in the worker. */
  readonly evaluationMs: number;
  /** Time from submission to answer. */
  readonly totalMs: number;
}

/** One evaluation of a policy. */
export interface ObservedPolicy {
  readonly observation: Observation;
  /** Time in the policy's code; 0 when it did not run. Milliseconds. */
  readonly evaluationMs: number;
}

/** A review as it is submitted. */
export interface SubmittedReview {
  readonly seq: number;
  readonly route: WorkerRoute;
  /** The id of the policy, or the name of the bucket; empty: several policies judge an object. */
  readonly target: string;
  /** The owner of the policy that it names, see policyOwner. */
  readonly owner?: string | undefined;
  readonly input: ReviewInput;
  /** How long the client waits for the answer. Milliseconds. */
  readonly requestTimeoutMs: number;
  readonly done: (answer: PoolAnswer) => void;
}

/** One review, until it is answered. */
export class ReviewJob {
  readonly seq: number;
  readonly route: WorkerRoute;
  /** The id of the policy, or the name of the bucket; empty: several policies judge an object. */
  readonly target: string;
  readonly input: ReviewInput;
  /** Key of its usual time: a bucket may have the name of a policy. */
  readonly usualKey: string;
  readonly submittedAt: number;
  /** When the client gives up. */
  readonly expiresAt: number;
  /** Usual time, as known when it was posted. Milliseconds. */
  expectedMs = 0;
  /** See ReviewTerms; null: none. */
  timedOut: readonly string[] | null = null;
  /** The owner of its policy, see policyOwner. Of a bucket's review: the owner that it was deferred for. */
  owner: string | undefined;
  /** See ReviewTerms. */
  readonly failedLookups: FailedLookup[] = [];
  /** Policies whose timeout was reported already. */
  readonly reported = new Set<string>();
  tries = 0;
  /** Its position among all reviews that its worker got. */
  turn = 0;
  /** A worker has not tried the policy that it names. */
  #isUntried = false;
  readonly #done: (answer: PoolAnswer) => void;

  constructor({ seq, route, target, owner, input, requestTimeoutMs, done }: SubmittedReview) {
    this.seq = seq;
    this.route = route;
    this.target = target;
    this.input = input;
    this.usualKey = this.isNamed ? target : bucketKey(target);
    this.submittedAt = performance.now();
    this.expiresAt = this.submittedAt + requestTimeoutMs;
    this.owner = owner;
    this.#done = done;
  }

  /** Whether it names its policy, instead of a bucket or several policies. */
  get isNamed(): boolean {
    return this.route !== 'admit' && this.target !== '';
  }

  /** Policies that judge its object together; undefined for all other reviews. */
  get together(): readonly string[] | undefined {
    return this.target === '' && !(this.input instanceof Uint8Array) ? this.input.policies : undefined;
  }

  /** Whether a worker deferred it, because it is for a policy of a slow owner, or for one that it has not tried. */
  get isDeferred(): boolean {
    return this.isNamed ? this.#isUntried : this.owner !== undefined;
  }

  /** @param owner that it is deferred for; undefined: the one that it has */
  defer(owner: string | undefined): void {
    this.owner = owner ?? this.owner;
    this.#isUntried = true;
  }

  /** Marks policies, members of groups, and all policies of owners as timed out. */
  without(ids: readonly string[]): void {
    this.timedOut = [...(this.timedOut ?? []), ...ids];
  }

  answer(answer: Omit<PoolAnswer, 'totalMs'>): void {
    this.#done({ ...answer, totalMs: performance.now() - this.submittedAt });
  }
}

/** The {@link ReviewJob.usualKey} of reviews of a bucket. */
export function bucketKey(bucket: string): string {
  return `admit/${bucket}`;
}
