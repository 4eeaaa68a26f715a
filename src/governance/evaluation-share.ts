// Limits the time of slow policies. Evaluation is synchronous: while one policy is evaluated, all others, the leader election
// and probes wait.
import { setImmediate } from 'node:timers/promises';
import { keyText, type ObjectKey } from '../resources/index.ts';
import { KeptEntries } from '../values/index.ts';
import { EvaluationTime } from './evaluation-time.ts';

/** Evaluations that take longer are slow: 20 times those of published policies. Milliseconds. */
const SLOW_MS = 100;
/** All slow policies together get a quarter of the time: after each evaluation, none begins for three times as long. */
const PAUSE_FACTOR = 3;
/** First delay after an evaluation that exceeded a limit; doubles with each further one. Milliseconds. */
const FIRST_DELAY_MS = 10_000;
/** Longest delay. Milliseconds. */
const MAX_DELAY_MS = 600_000;
/** Maximum number of slow policies in memory, deleted ones included. The oldest is removed first. */
const MAX_POLICIES = 10_000;

/** A generation of a policy. */
export interface EvaluatedSpec {
  readonly kind: string;
  readonly key: ObjectKey;
  readonly generation: number | undefined;
}

interface SlowPolicy {
  readonly generation: number | undefined;
  readonly tookMs: number;
  /** Consecutive evaluations that exceeded a limit. */
  readonly exceeded: number;
  /** When the same generation may be evaluated again. Milliseconds. */
  readonly until: number;
}

/** Shares the time of the process among policies of all kinds. */
export class EvaluationShare {
  readonly #slow = new KeptEntries<string, SlowPolicy>({ maxEntries: MAX_POLICIES });
  #pausedUntil = 0;

  /** Delay before a policy may be evaluated, 0 for none. An edit ends the delay of the policy itself only. Milliseconds. */
  waitMs(spec: EvaluatedSpec, now: number): number {
    const slow = this.#slow.get(idOf(spec));
    return slow === undefined
      ? 0
      : Math.max(0, this.#pausedUntil - now, slow.generation === spec.generation ? slow.until - now : 0);
  }

  /** Records the start of an evaluation, and reserves its time: evaluations overlap while they read objects. */
  begin(spec: EvaluatedSpec, now: number): void {
    const slow = this.#slow.get(idOf(spec));
    if (slow !== undefined) {
      this.#pause(now, slow.tookMs * (1 + PAUSE_FACTOR));
    }
  }

  /** Records the end of an evaluation. @param isExceeded whether it exceeded a limit */
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
  }

  /** Evaluates and records the time, after other work that is due: consecutive evaluations must not delay it. */
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
