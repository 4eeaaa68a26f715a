// The auditors of a cluster, of which this process is one.
import { AuditorMembers } from '../../audit/index.ts';
import { type Connection, KubernetesCluster } from '../../cluster/index.ts';
import type { ControlledCluster } from '../../runtime/index.ts';
import { AUDITOR_FIELD_MANAGER } from '../../resources/index.ts';
import { electionTimes } from '../controller/leader-election.ts';
import type { AuditorFlags } from './auditor-flags.ts';

/** Of an auditor that shares with nobody: its Lease only shows that it works. Milliseconds. */
const PRESENCE_TIMES = { leaseDurationMs: 60_000, renewDeadlineMs: 50_000, retryPeriodMs: 20_000 } as const;
/** Timeout of a request as a share of the renew deadline, so that there is time for a second one. */
const REQUEST_SHARE = 0.5;

/** With a client of its own, so that no other request delays a renewal. @param running ends the client */
export function auditorMembers(
  running: AsyncDisposableStack,
  flags: AuditorFlags,
  connection: Connection,
  { log, metrics }: Pick<ControlledCluster, 'log' | 'metrics'>,
): AuditorMembers {
  const times = flags.leaderElect ? electionTimes(flags) : PRESENCE_TIMES;
  const requestTimeoutMs = Math.trunc(times.renewDeadlineMs * REQUEST_SHARE);
  const client = new KubernetesCluster(connection, { fieldManager: AUDITOR_FIELD_MANAGER, requestTimeoutMs });
  return new AuditorMembers({ ...times, cluster: running.use(client), namespace: flags.namespace, log, metrics });
}
