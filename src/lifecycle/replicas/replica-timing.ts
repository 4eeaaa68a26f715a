// How long the controller waits for replicas, and how often it tries.
import { ALIVE_INTERVAL_MS, SILENCE_LIMIT_MS } from '../../control/index.ts';

/** Times of the controller's side of control ports. Milliseconds. */
export interface ReplicaTiming {
  /** How often it is looked who is silent. */
  readonly tickMs: number;
  /** Without a message for this long a replica is lost. */
  readonly silenceMs: number;
  /** How long a replica may take to be heard completely, from when its object is seen, until it is lost. */
  readonly connectingMs: number;
  /** How long a replica whose connection was cut may take to be heard completely again, until it is lost. */
  readonly returnMs: number;
  /** How long a replica must be heard after its second loss before it counts; doubled for each loss that follows. */
  readonly holdMs: number;
  readonly holdCapMs: number;
  /** A replica that was connected for this long has not been lost before. */
  readonly steadyMs: number;
  /** The first wait before a connection is tried again; doubled for each that follows. */
  readonly retryMs: number;
  readonly retryCapMs: number;
  /** A connection that lasted this long was none of those that fail at once. */
  readonly stableMs: number;
  /** How long it takes until it is looked again whether the owner of a lost replica is there; doubled each time. */
  readonly ownerMs: number;
  readonly ownerCapMs: number;
}

export const REPLICA_TIMING: ReplicaTiming = {
  tickMs: ALIVE_INTERVAL_MS / 2,
  silenceMs: SILENCE_LIMIT_MS,
  // Rollouts wait so long for a replica that died with the leader before. A handshake takes some milliseconds.
  connectingMs: 2_000,
  // A status that says what is over in half a second helps nobody, and costs a write for each policy, twice.
  returnMs: 500,
  // Each loss and each return is told of in the status of every policy: thousands of writes.
  holdMs: 1_000,
  holdCapMs: 30_000,
  steadyMs: 60_000,
  retryMs: 50,
  retryCapMs: 2_000,
  stableMs: 1_000,
  ownerMs: 500,
  // As long as it may take until somebody hears of a node that came back without a pod that it had.
  ownerCapMs: 30_000,
};

/** A wait that doubles with each failure up to a limit, the upper half of it left to chance. Milliseconds. */
export function doubledWait(baseMs: number, capMs: number, failures: number, random: () => number): number {
  // 2 ** 20 is past every limit, and far from infinity.
  return Math.min(capMs, baseMs * 2 ** Math.min(failures, 20)) * (0.5 + random() / 2);
}
