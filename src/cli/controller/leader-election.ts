// The election of a leader among replicas of one process.
import { type Connection, KubernetesCluster } from '../../cluster/index.ts';
import type { Logger } from '../../log/index.ts';
import { type ControlledCluster, LeaderElector } from '../../runtime/index.ts';
import { durationMs } from '../cluster/duration.ts';
import { usageError } from '../errors.ts';

/** Leases have whole seconds, and with less than three of them a slow API server would end each leadership. Milliseconds. */
const MIN_LEASE_MS = 3_000;
/** Timeout of a request of the election as a share of the renew deadline, so that there is time for a second one. */
const ELECTION_REQUEST_SHARE = 0.5;

/** Shares of the lease duration, those of Kubernetes' components: 15 s, 10 s, 2 s. */
const RENEW_SHARE = 10 / 15;
const RETRY_SHARE = 2 / 15;

/** The times of the election, in milliseconds. */
export function electionTimes(flags: { readonly leaseDuration: string }): {
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
} {
  const leaseDurationMs = durationMs(flags.leaseDuration, '--lease-duration');
  if (leaseDurationMs < MIN_LEASE_MS) {
    throw usageError(`--lease-duration ${flags.leaseDuration}: expected at least ${MIN_LEASE_MS / 1000}s`);
  }
  return {
    leaseDurationMs,
    renewDeadlineMs: Math.trunc(leaseDurationMs * RENEW_SHARE),
    retryPeriodMs: Math.trunc(leaseDurationMs * RETRY_SHARE),
  };
}

export interface LeaderElectionOptions {
  readonly connection: Connection;
  readonly fieldManager: string;
  readonly times: ReturnType<typeof electionTimes>;
  /** Of the Lease. */
  readonly namespace: string;
  readonly name: string;
  readonly log: Logger;
  readonly metrics: ControlledCluster['metrics'];
}

/** An elector with a client of its own, so that no other request delays the election. @param running ends the client */
export function leaderElection(running: AsyncDisposableStack, options: LeaderElectionOptions): LeaderElector {
  const { connection, fieldManager, times, ...election } = options;
  const requestTimeoutMs = Math.trunc(times.renewDeadlineMs * ELECTION_REQUEST_SHARE);
  const cluster = running.use(new KubernetesCluster(connection, { fieldManager, requestTimeoutMs }));
  return new LeaderElector({ ...times, ...election, cluster });
}
