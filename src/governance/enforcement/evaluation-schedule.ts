// When a ConfigurationPolicy is evaluated: on changes of what it reads, at intervals, or never again.
import { parseDuration } from '../../go/index.ts';
import { type ConfigurationPolicy, keyText, type ObjectKey } from '../../resources/index.ts';
import { TokenBucket } from '../../runtime/index.ts';

/** Evaluations of one policy in quick succession, before it has to wait: more than any change of an object causes. */
const BURST = 10;
/** Evaluations of a policy whose objects change all the time: every 5 seconds, as upstream's back-off. */
const PER_SECOND = 0.2;
/** Longest interval: that of timers. Milliseconds. */
const MAX_INTERVAL_MS = 2 ** 31 - 1;
const NS_PER_MS = 1_000_000n;

/** `watch`: on changes. `never`: not again until the policy changes. Otherwise an interval in milliseconds. */
export type Interval = 'watch' | 'never' | number;

/** Whether a policy is to be evaluated now; otherwise when to look again. */
export type Due = { readonly isDue: true } | { readonly isDue: false; readonly afterMs: number | undefined };

interface Known {
  readonly pace: TokenBucket;
  /** The last evaluation. Milliseconds since 1970. */
  at: number | undefined;
}

/** The interval after an evaluation with this result. */
export function intervalOf({ spec }: ConfigurationPolicy, isCompliant: boolean): Interval {
  const text = spec.evaluationInterval?.[isCompliant ? 'compliant' : 'noncompliant'] ?? 'watch';
  if (text === 'watch' || text === 'never') {
    return text;
  }
  const duration = parseDuration(text);
  return duration === undefined ? 'watch' : Math.min(Number(duration / NS_PER_MS), MAX_INTERVAL_MS);
}

/** The evaluations of all policies. */
export class EvaluationSchedule {
  readonly #known = new Map<string, Known>();

  /** Decides whether a policy is evaluated in this pass, and counts the evaluation. */
  take(key: ObjectKey, policy: ConfigurationPolicy, now: number): Due {
    const known = this.#of(key);
    const { metadata, status } = policy;
    const isNew = status?.lastEvaluatedGeneration !== metadata.generation || known.at === undefined;
    const wait = isNew ? 0 : this.#waitMs(known, intervalOf(policy, status?.compliant === 'Compliant'), now);
    if (wait !== 0) {
      return { isDue: false, afterMs: wait };
    }
    if (!known.pace.take(now) && !isNew) {
      return { isDue: false, afterMs: 1000 / PER_SECOND };
    }
    known.at = now;
    return { isDue: true };
  }

  forget(key: ObjectKey): void {
    this.#known.delete(keyText(key));
  }

  /** Undefined: never again. */
  #waitMs({ at = 0 }: Known, interval: Interval, now: number): number | undefined {
    if (interval === 'never') {
      return undefined;
    }
    return interval === 'watch' ? 0 : Math.max(0, at + interval - now);
  }

  #of(key: ObjectKey): Known {
    const text = keyText(key);
    const known = this.#known.get(text) ?? {
      pace: new TokenBucket({ perSecond: PER_SECOND, burst: BURST }),
      at: undefined,
    };
    this.#known.set(text, known);
    return known;
  }
}
