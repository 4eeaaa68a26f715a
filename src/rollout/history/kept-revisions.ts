// The revisions that are kept of a policy: which one serves, why each was made, with which modules.
import { type Cluster, listAll } from '../../cluster/index.ts';
import { type RevisionContent, revisionCause, type RollbackCandidate } from '../../control/index.ts';
import {
  type KubernetesObject,
  isGroupSpec,
  POLICY_REVISIONS,
  POLICY_UID_LABEL,
  type PolicyRevision,
  revisionParts,
  servesInsteadOf,
  type ServingTurn,
  snapshotOf,
} from '../../resources/index.ts';

/** The revisions of a policy, oldest first. @throws ApiError */
export async function listRevisions(
  cluster: Pick<Cluster, 'list'>,
  { metadata }: Pick<KubernetesObject, 'metadata'>,
  namespace: string,
): Promise<readonly PolicyRevision[]> {
  const labelSelector = `${POLICY_UID_LABEL}=${metadata.uid ?? ''}`;
  const { items } = await listAll(cluster, POLICY_REVISIONS, { namespace, labelSelector });
  return items.toSorted((one, other) => one.spec.revision - other.spec.revision);
}

/** A revision in a history. */
export interface HistoryRow {
  readonly number: number;
  readonly state: string;
  /** When it entered the state. */
  readonly since: string;
  readonly cause: string;
  readonly digests: readonly string[];
}

/** The rows for revisions, oldest first. */
export function historyRows(revisions: readonly PolicyRevision[]): readonly HistoryRow[] {
  return revisions.map((revision) => ({
    number: revision.spec.revision,
    state: revisionState(revision),
    since: revisionSince(revision),
    cause: historyCause(revision, revisionBefore(revisions, revision)),
    digests: revisionParts(revision).map(({ digest }) => digest),
  }));
}

/** The newest kept revision before this one. */
export function revisionBefore(
  revisions: readonly PolicyRevision[],
  revision: PolicyRevision,
): PolicyRevision | undefined {
  return revisions[revisions.indexOf(revision) - 1];
}

/** The revision that answers requests; undefined while there is none. */
export function keptServing(revisions: readonly PolicyRevision[]): PolicyRevision | undefined {
  return revisions
    .filter(({ status }) => status?.state === 'Serving')
    .reduce<PolicyRevision | undefined>(
      (last, one) => (last === undefined || servesInsteadOf(turnOf(one), turnOf(last)) ? one : last),
      undefined,
    );
}

function turnOf({ spec, status }: PolicyRevision): ServingTurn {
  return { order: status?.order ?? 0, number: spec.revision };
}

/** The revision as a target of rollbacks. */
export function rollbackCandidate(revision: PolicyRevision): RollbackCandidate {
  const { order = 0 } = revision.status ?? {};
  return { order, modules: revisionParts(revision), snapshot: revision.spec.snapshot };
}

export function revisionState({ status }: PolicyRevision): string {
  return status?.state ?? 'Candidate';
}

/** When it entered its state. */
export function revisionSince({ status, metadata }: PolicyRevision): string {
  return status?.stateSince ?? metadata.creationTimestamp ?? '';
}

/** States whose reason is that of a failure. */
const FAILURE_STATES: ReadonlySet<string> = new Set(['Candidate', 'Failed']);

/**
 * Why the revision was made: a rollback, a refresh, or the changed fields of the spec; and the reason of its failure.
 * @param before the revision before, if it is kept
 */
export function historyCause(revision: PolicyRevision, before: PolicyRevision | undefined): string {
  const made = revisionCause(contentOf(revision), before && contentOf(before));
  const reason = FAILURE_STATES.has(revisionState(revision)) ? (revision.status?.reason ?? '') : '';
  return reason === '' ? made : `${made} (${reason})`;
}

function contentOf(revision: PolicyRevision): RevisionContent {
  const { policyGeneration: generation, rollbackOf, refresh, snapshot } = revision.spec;
  return { generation, rollbackOf, refresh, snapshot, modules: revisionParts(revision) };
}

export interface RevisionModule {
  /** The member of a group, or the policy. */
  readonly name: string;
  /** The reference in the spec. */
  readonly module: string;
  /** Absent while the module was never fetched. */
  readonly digest?: string;
  /** Of a module from a registry: the digest of its manifest. */
  readonly manifest?: string;
  /** Whether its signatures were verified. */
  readonly isVerified?: true;
}

/** The modules of a revision, with their digests. */
export function revisionModules(revision: PolicyRevision): readonly RevisionModule[] {
  if (revision.status?.templates !== undefined) {
    return revisionParts(revision);
  }
  const snapshot = snapshotOf(revision);
  const named = isGroupSpec(snapshot)
    ? Object.entries(snapshot.policies).map(([name, { module }]) => ({ name, module }))
    : [{ name: revision.spec.policy.name, module: snapshot.module }];
  return named.map((entry) => {
    const found = revision.status?.modules?.find(({ name }) => name === entry.name);
    if (found === undefined) {
      return entry;
    }
    const { digest, manifest, verifiedBy } = found;
    return {
      ...entry,
      digest,
      ...(manifest === undefined ? {} : { manifest }),
      ...(verifiedBy === undefined ? {} : { isVerified: true as const }),
    };
  });
}
