// A review on its way through the worker pool.
import type { Observation } from '../../engine/index.ts';
import type { ReviewResult, Route } from '../evaluation-protocol.ts';

/** The answer to one review. Times in milliseconds. */
export interface Answer {
  readonly result: ReviewResult;
  /** One for each time that a policy was asked; the same object for all answers of a worker that are counted alike. */
  readonly observed: readonly ObservedPolicy[];
  /** Time spent on the review in the worker. */
  readonly evaluationMs: number;
  /** Time from submission to answer. */
  readonly totalMs: number;
}

/** What was observed of one policy, each time that it was asked. */
export interface ObservedPolicy {
  readonly observation: Observation;
  /** Time spent in the policy; 0 when it was not asked. Milliseconds. */
  readonly evaluationMs: number;
}

/** What is asked. */
export interface ReviewRequest {
  readonly seq: number;
  readonly route: Route;
  /** The id of the policy, or the name of the bucket. */
  readonly target: string;
  readonly body: Uint8Array;
  /** How long whoever asked waits for the answer. Milliseconds. */
  readonly patienceMs: number;
  readonly done: (answer: Answer) => void;
}

/** One review, until it is answered. */
export class ReviewJob {
  readonly seq: number;
  readonly route: Route;
  /** The id of the policy, or the name of the bucket. */
  readonly target: string;
  readonly body: Uint8Array;
  /** Under which name it is noted how long it takes; a bucket may be called as a policy is. */
  readonly usualKey: string;
  readonly submittedAt: number;
  /** When whoever asked has stopped waiting for the answer. */
  readonly expiresAt: number;
  /** How long the policy usually takes, as known when the job was handed out. Milliseconds. */
  expectedMs = 0;
  /** Policies and members that are to be answered as timed out; null: none. */
  timedOut: readonly string[] | null = null;
  /** Whether it is for a policy that was slow when the fast lane had it. */
  isDeferred = false;
  /** See ReviewTerms. */
  namespaceProblem: string | null = null;
  /** Policies that were reported already as cut off. */
  readonly told = new Set<string>();
  tries = 0;
  /** The how-many-eth it is that its worker was given. */
  turn = 0;
  readonly #done: (answer: Answer) => void;

  constructor({ seq, route, target, body, patienceMs, done }: ReviewRequest) {
    this.seq = seq;
    this.route = route;
    this.target = target;
    this.body = body;
    this.usualKey = route === 'admit' ? bucketKey(target) : target;
    this.submittedAt = performance.now();
    this.expiresAt = this.submittedAt + patienceMs;
    this.#done = done;
  }

  /** Whether it names its policy, instead of a bucket. */
  get isNamed(): boolean {
    return this.route !== 'admit';
  }

  /** Adds to what is to be answered as timed out. */
  without(ids: readonly string[]): void {
    this.timedOut = [...(this.timedOut ?? []), ...ids];
  }

  answer(answer: Omit<Answer, 'totalMs'>): void {
    this.#done({ ...answer, totalMs: performance.now() - this.submittedAt });
  }
}

/** The {@link ReviewJob.usualKey} of reviews of a bucket. */
export function bucketKey(bucket: string): string {
  return `admit/${bucket}`;
}
