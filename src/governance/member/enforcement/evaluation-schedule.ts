// When a ConfigurationPolicy is evaluated: on changes of what it reads, at intervals, or never again.
import { parseDuration } from '../../../go/index.ts';
import { type ConfigurationPolicy, keyText, type ObjectKey } from '../../../resources/index.ts';
import { TokenBucket } from '../../../runtime/index.ts';
import { KeptEntries } from '../../../values/index.ts';

/** Maximum number of consecutive evaluations of one policy without a delay: more than any change of an object causes. */
const BURST = 10;
/** Interval between evaluations of a policy whose objects change constantly, as upstream's back-off. Milliseconds. */
const PER_SECOND = 0.2;
/** Maximum number of deleted policies in memory: recreating a policy must not end its delay. */
const MAX_DELETED = 10_000;
/** Longest interval that timers of Node.js support. Milliseconds. */
const MAX_INTERVAL_MS = 2 ** 31 - 1;
const NS_PER_MS = 1_000_000n;

/** `watch`: on changes. `never`: not again until the policy changes. Otherwise an interval in milliseconds. */
export type Interval = 'watch' | 'never' | number;

/** Whether a policy is to be evaluated now; otherwise when to look again. */
export type Due = { readonly isDue: true } | { readonly isDue: false; readonly afterMs: number | undefined };

interface Known {
  readonly pace: TokenBucket;
  /** Whether the policy was deleted before. */
  isRecreated: boolean;
  uid: string | undefined;
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
  /** The pace of policies that were deleted, oldest first. */
  readonly #deleted = new KeptEntries<string, TokenBucket>({ maxEntries: MAX_DELETED });

  /** Number of deleted policies whose pace is known. */
  get deleted(): number {
    return this.#deleted.size;
  }

  /** Decides whether a policy is evaluated in this pass. */
  take(key: ObjectKey, policy: ConfigurationPolicy, now: number): Due {
    const known = this.#of(key);
    const { metadata, status } = policy;
    // Who recreates it at once leaves no time in which it is seen to be gone.
    known.isRecreated ||= known.uid !== undefined && known.uid !== metadata.uid;
    known.uid = metadata.uid;
    const at = known.at ?? evaluatedAt(policy);
    const isNew = at === undefined || !hasVerdict(policy);
    const wait = isNew ? 0 : waitMs(at, intervalOf(policy, status?.compliant === 'Compliant'), now);
    if (wait !== 0) {
      return { isDue: false, afterMs: wait };
    }
    if (!known.pace.take(now) && (!isNew || known.isRecreated)) {
      return { isDue: false, afterMs: 1000 / PER_SECOND };
    }
    return { isDue: true };
  }

  /** Records an evaluation whose result is in the status. */
  evaluated(key: ObjectKey, now: number): void {
    this.#of(key).at = now;
  }

  forget(key: ObjectKey, now: number): void {
    const text = keyText(key);
    // A bucket that is full delays nothing.
    this.#deleted.deleteOldest((pace) => pace.isFull(now));
    const known = this.#known.get(text);
    this.#known.delete(text);
    if (known !== undefined) {
      this.#deleted.set(text, known.pace);
    }
  }

  #of(key: ObjectKey): Known {
    const text = keyText(key);
    const pace = this.#deleted.get(text);
    const known = this.#known.get(text) ?? {
      pace: pace ?? new TokenBucket({ perSecond: PER_SECOND, burst: BURST }),
      isRecreated: pace !== undefined,
      uid: undefined,
      at: undefined,
    };
    this.#known.set(text, known);
    return known;
  }
}

/** Whether the status is the result of an evaluation of the present spec: a suspended policy has none. */
function hasVerdict({ metadata, status }: ConfigurationPolicy): boolean {
  const { compliant, lastEvaluatedGeneration } = status ?? {};
  return lastEvaluatedGeneration === metadata.generation && (compliant === 'Compliant' || compliant === 'NonCompliant');
}

/** Time of the last evaluation according to the status, which survives a restart. Milliseconds since 1970. */
function evaluatedAt({ status }: ConfigurationPolicy): number | undefined {
  const at = Date.parse(status?.lastEvaluated ?? '');
  return Number.isNaN(at) ? undefined : at;
}

/** Undefined: never again. */
function waitMs(at: number, interval: Interval, now: number): number | undefined {
  if (interval === 'never') {
    return undefined;
  }
  return interval === 'watch' ? 0 : Math.max(0, at + interval - now);
}
