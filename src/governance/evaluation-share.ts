// How often slow policies are evaluated. Evaluation is synchronous, so that they would keep all others, the leader election and
// probes waiting.
import { setImmediate } from 'node:timers/promises';
import { keyText, type ObjectKey } from '../resources/index.ts';
import { EvaluationTime } from './evaluation-time.ts';

/** Evaluations that take longer are slow: 20 times those of published policies. Milliseconds. */
const SLOW_MS = 100;
/** Slow evaluations have a quarter of the time, all together: after each one, none begins for three times as long. */
const PAUSE_FACTOR = 3;
/** Delay after an evaluation that used all that a policy may use; doubles with each one. Milliseconds. */
const FIRST_DELAY_MS = 10_000;
/** Longest delay. Milliseconds. */
const MAX_DELAY_MS = 600_000;
/** Policies that are remembered, also deleted ones. The oldest is forgotten first. */
const MAX_POLICIES = 10_000;

/** The policy at one generation. */
export interface EvaluatedSpec {
  readonly kind: string;
  readonly key: ObjectKey;
  readonly generation: number | undefined;
}

interface SlowPolicy {
  readonly generation: number | undefined;
  readonly tookMs: number;
  /** Consecutive evaluations that used all. */
  readonly exceeded: number;
  /** When the same generation may be evaluated again. Milliseconds. */
  readonly until: number;
}

/** The evaluations of the policies of a cluster, of all kinds. */
export class EvaluationShare {
  readonly #slow = new Map<string, SlowPolicy>();
  #pausedUntil = 0;

  /** Delay before a policy may be evaluated; 0 for now. Milliseconds. An edit ends the delay of the policy, not that of all slow ones. */
  waitMs(spec: EvaluatedSpec, now: number): number {
    const slow = this.#slow.get(idOf(spec));
    return slow === undefined
      ? 0
      : Math.max(0, this.#pausedUntil - now, slow.generation === spec.generation ? slow.until - now : 0);
  }

  /** Reserves the time of an evaluation that begins: others may begin before its end. */
  begin(spec: EvaluatedSpec, now: number): void {
    const slow = this.#slow.get(idOf(spec));
    if (slow !== undefined) {
      this.#pause(now, slow.tookMs * (1 + PAUSE_FACTOR));
    }
  }

  /** Counts an evaluation. @param isExceeded whether the policy used all that it may use */
  end(spec: EvaluatedSpec, tookMs: number, isExceeded: boolean, now: number): void {
    const id = idOf(spec);
    const before = this.#slow.get(id);
    this.#slow.delete(id);
    if (tookMs < SLOW_MS && !isExceeded) {
      return;
    }
    const exceeded = isExceeded ? (before?.exceeded ?? 0) + 1 : 0;
    const delay = exceeded === 0 ? 0 : Math.min(FIRST_DELAY_MS * 2 ** (exceeded - 1), MAX_DELAY_MS);
    this.#slow.set(id, { generation: spec.generation, tookMs, exceeded, until: now + delay });
    this.#pause(now, tookMs * PAUSE_FACTOR);
    for (const oldest of this.#slow.keys()) {
      if (this.#slow.size <= MAX_POLICIES) {
        break;
      }
      this.#slow.delete(oldest);
    }
  }

  /** Evaluates, and counts the time. Other work of the process comes first: evaluations in a row must not delay it. */
  async evaluate<Result>(spec: EvaluatedSpec, run: (time: EvaluationTime) => Promise<Result>): Promise<Result> {
    const time = new EvaluationTime();
    this.begin(spec, Date.now());
    await setImmediate();
    try {
      return await run(time);
    } finally {
      this.end(spec, time.spentMs, time.isExceeded, Date.now());
    }
  }

  #pause(now: number, ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, now + ms);
  }
}

function idOf({ kind, key }: EvaluatedSpec): string {
  return `${kind} ${keyText(key)}`;
}
