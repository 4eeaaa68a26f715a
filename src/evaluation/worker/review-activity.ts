import { type OnUnitStart, MATCH_CONDITIONS, type Observation } from '../../engine/index.ts';
import type { WorkerActivity } from '../evaluation-protocol.ts';

/**
 * Time reserved to evaluate a bucket's review again without the policy that timed out: two intervals of the watchdog, and far
 * more than all policies of a bucket usually take. Milliseconds.
 */
const SECOND_TRY_MS = 250;

export interface ReviewActivityOptions {
  readonly seq: number;
  /** Time until the review must be answered; Infinity: only its policy's own limit counts. Milliseconds. */
  readonly leftMs: () => number;
  readonly activity: Pick<WorkerActivity, 'enter' | 'leave'>;
  /** The number of a policy, see {@link WorkerActivity}. */
  readonly numberOf: (policy: string) => number;
}

/** The policies that run for one review: published for the watchdog, and timed. */
export class ReviewActivity {
  readonly #options: ReviewActivityOptions;
  /** Time in the code of each policy, by id. Milliseconds. */
  readonly #times = new Map<string, number>();
  /** Undefined while no code of a policy runs. */
  #policy: string | undefined;
  #lastPolicy = 0;
  #startedAt = 0;

  constructor(options: ReviewActivityOptions) {
    this.#options = options;
  }

  /** The number of the policy that ran last; 0: none did. */
  get lastPolicy(): number {
    return this.#lastPolicy;
  }

  readonly onUnitStart: OnUnitStart = (id, timeoutMs, member) => {
    const { seq, activity, leftMs, numberOf } = this.#options;
    const policy = member < 0 ? id : id.slice(0, id.indexOf('/'));
    this.#lastPolicy = numberOf(policy);
    activity.enter(seq, Math.min(timeoutMs, timeToEvaluate(leftMs())), member, this.#lastPolicy);
    this.#policy = member === MATCH_CONDITIONS ? undefined : policy;
    this.#startedAt = performance.now();
  };

  readonly onUnitEnd = (): void => {
    this.#options.activity.leave();
    if (this.#policy !== undefined) {
      this.#times.set(this.#policy, (this.#times.get(this.#policy) ?? 0) + performance.now() - this.#startedAt);
    }
  };

  /** For each observation; -1 when no code of its policy ran. Those of one policy have equal shares of its time. */
  timesOf(observations: readonly Observation[]): number[] {
    return observations.map(({ policy }) => {
      const ms = this.#times.get(policy);
      return ms === undefined ? -1 : ms / observations.filter((other) => other.policy === policy).length;
    });
  }
}

/** The timeout of a policy, within the time that is left for the review. */
function timeToEvaluate(leftMs: number): number {
  return leftMs === Infinity ? Infinity : Math.max(leftMs - SECOND_TRY_MS, leftMs / 2, 0);
}
