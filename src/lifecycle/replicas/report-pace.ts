import { TokenBucket } from '../../runtime/index.ts';

/** Changes at once: what three replicas report while all of ten thousand policies are rolled out, and room to grow. */
export const CHANGES_AT_ONCE = 100_000;
/** Changes of a policy server in the long run. Each may cost a write of a status. */
export const CHANGES_PER_SECOND = 1_000;
/** Longest delay of a change, so that rollouts beside a replica that reports ever new changes go on. Milliseconds. */
export const MAX_CHANGE_DELAY_MS = 2_000;

/** Rate limit of the changes that replicas report, by PolicyServer: one whose reports flicker delays no policy of another one. */
export class ReportPace {
  readonly #buckets = new Map<string, TokenBucket>();

  /** The delay of a change. @param now milliseconds of a monotonic clock */
  delayMs(policyServer: string, now: number): number {
    let bucket = this.#buckets.get(policyServer);
    if (bucket === undefined) {
      bucket = new TokenBucket({ perSecond: CHANGES_PER_SECOND, burst: CHANGES_AT_ONCE });
      this.#buckets.set(policyServer, bucket);
    }
    return bucket.take(now) ? 0 : MAX_CHANGE_DELAY_MS;
  }
}
