// Time limits and delays of the controller for replicas.
import { ALIVE_INTERVAL_MS, SILENCE_LIMIT_MS } from '../../control/index.ts';

/** Milliseconds. */
export interface ReplicaTiming {
  /** Interval of checks for silent replicas. */
  readonly tickMs: number;
  /** A replica without a message for this long is lost. */
  readonly silenceMs: number;
  /** Time for a new replica to send all reports, from when its object is seen, before it is lost. */
  readonly connectingMs: number;
  /** Time for a replica whose connection broke to send all reports again, before it is lost. */
  readonly returnMs: number;
  /** Delay after the second loss before a connected replica counts; doubles with each further loss. */
  readonly holdMs: number;
  readonly holdCapMs: number;
  /** After this time connected, earlier losses no longer count. */
  readonly steadyMs: number;
  /** Delay before the second connection attempt; doubles with each one. */
  readonly retryMs: number;
  readonly retryCapMs: number;
  /** A connection that lasted this long resets the delay of attempts. */
  readonly stableMs: number;
  /** Delay before the owner of a lost replica is checked again; doubles each time. */
  readonly ownerMs: number;
  readonly ownerCapMs: number;
  /** Delay before the pod of a lost replica is checked again that was not ready: once it is, it gets requests. */
  readonly unreadyMs: number;
  /** The times in messages of this time are compared with the clock: the quickest of some twenty was not held up. */
  readonly clockMs: number;
}

export const REPLICA_TIMING: ReplicaTiming = {
  tickMs: ALIVE_INTERVAL_MS / 2,
  silenceMs: SILENCE_LIMIT_MS,
  // Rollouts wait this long for a replica that ended together with the previous leader. A handshake takes some
  // milliseconds.
  connectingMs: 2_000,
  // A loss of half a second needs no status, which would cost two writes for each policy.
  returnMs: 500,
  // Each loss and each return changes the status of every policy: thousands of writes.
  holdMs: 1_000,
  holdCapMs: 30_000,
  steadyMs: 60_000,
  retryMs: 50,
  retryCapMs: 2_000,
  stableMs: 1_000,
  ownerMs: 500,
  // Bounds the delay until a pod of a returning node is found deleted.
  ownerCapMs: 30_000,
  // A status may be wrong for as long. Pods of a lost node are read for five minutes, until they are deleted.
  unreadyMs: 2_000,
  clockMs: 5_000,
};

/** A delay that doubles with each failure up to a limit; half of it is random. Milliseconds. */
export function backoffMs(baseMs: number, capMs: number, failures: number, random: () => number): number {
  // 2 ** 20 exceeds every limit, without overflow.
  return Math.min(capMs, baseMs * 2 ** Math.min(failures, 20)) * (0.5 + random() / 2);
}
