// The status of a PolicyServerReplica: a summary whose size does not depend on the number of policies.
import { createHash } from 'node:crypto';
import { MAX_DEVIATIONS, setCondition } from '../../resources/index.ts';
import type { Condition, PolicyServerReplica } from '../../resources/index.ts';
import type { ReplicaState, ServedRevision } from './replica-state.ts';
import { shortened } from '../../values/index.ts';

export type ReplicaStatus = NonNullable<PolicyServerReplica['status']>;

/** Maximum length of a deviation's message, so that an object with a hundred of them has about 100 KB. Characters. */
export const MAX_DEVIATION_MESSAGE = 1024;

/** Reasons of the condition Ready of a PolicyServerReplica. */
const REPLICA_REASONS = {
  /** The replica has not read the revisions of its cluster yet; recorded ones may serve. */
  starting: 'Starting',
  /** Everything that should serve does. */
  upToDate: 'UpToDate',
  /** Something differs from the desired state, see `status.deviations`. */
  deviating: 'Deviating',
} as const;

/** Input of a status besides the reports. Times in milliseconds since 1970. */
export interface ReplicaStatusInput {
  readonly generation: number | undefined;
  readonly startedAt: string;
  /** Current conditions of the object. */
  readonly conditions: readonly Condition[] | undefined;
  readonly now: number;
}

/** The current status, without `lastReported`. */
export function replicaStatus(
  replica: Pick<ReplicaState, 'isSynced' | 'reports' | 'served' | 'deviations'>,
  { generation, startedAt, conditions, now }: ReplicaStatusInput,
): ReplicaStatus {
  const counts = { Staged: 0, Failed: 0, Loading: 0, Serving: 0 };
  for (const { state } of replica.reports()) {
    counts[state] += 1;
  }
  const served = [...replica.served()];
  const all = [...replica.deviations()];
  const deviations = all
    .toSorted((a, b) => compare(a.policy, b.policy) || a.revision - b.revision)
    .slice(0, MAX_DEVIATIONS)
    .map(({ message, ...deviation }) => ({
      ...deviation,
      ...(message === undefined ? {} : { message: shortened(message, MAX_DEVIATION_MESSAGE) }),
    }));
  const observed = generation === undefined ? {} : { observedGeneration: generation };
  const ready = setCondition(
    conditions,
    { type: 'Ready', ...observed, ...readiness(replica.isSynced, all.length) },
    now,
  );
  return {
    setHash: setHash(served),
    servingRevisions: served.length,
    stagedRevisions: counts.Staged,
    failedRevisions: counts.Failed,
    ...(deviations.length === 0 ? {} : { deviations }),
    deviationCount: all.length,
    ...observed,
    startedAt,
    conditions: [...ready],
  };
}

/** The hash of all serving revisions, independent of their order. */
export function setHash(served: Iterable<ServedRevision>): string {
  const hash = createHash('sha256');
  // As JSON, so that different sets have different texts.
  const lines = [...served].map(({ policy, revision, digest }) => JSON.stringify([policy, revision, digest]));
  for (const line of lines.toSorted()) {
    hash.update(`${line}\n`);
  }
  return `sha256:${hash.digest('hex')}`;
}

function readiness(isSynced: boolean, deviations: number): Pick<Condition, 'status' | 'reason' | 'message'> {
  if (!isSynced) {
    const message = 'the revisions of the cluster have not been read yet';
    return { status: 'False', reason: REPLICA_REASONS.starting, message };
  }
  return deviations === 0
    ? { status: 'True', reason: REPLICA_REASONS.upToDate, message: '' }
    : {
        status: 'False',
        reason: REPLICA_REASONS.deviating,
        message: `${deviations} ${deviations === 1 ? 'revision is' : 'revisions are'} not as they should be`,
      };
}

function compare(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}
