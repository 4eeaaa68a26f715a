// The revisions that are kept of a policy, and their properties as text.
import { ApiError, type Cluster, listAll } from '../../cluster/index.ts';
import {
  type AdmissionPolicyObject,
  isGroupSpec,
  POLICY_REVISIONS,
  POLICY_UID_LABEL,
  type PolicyRevision,
  type RevisionSummary,
  servesInsteadOf,
  type ServingTurn,
  snapshotOf,
} from '../../resources/index.ts';
import { type RevisionContent, revisionCause, type RollbackCandidate } from '../../control/index.ts';
import { CliError } from '../errors.ts';
import { oneLine } from '../table.ts';
import type { RolloutTarget } from './rollout-target.ts';

/** The right to read revisions, as hints name it. */
export const REVISIONS_RIGHT = 'the verb list on policyrevisions.portcullis.dev';

/** The revisions of the policy, oldest first. @throws CliError when reading them is forbidden, or there are none */
export async function readRevisions(target: RolloutTarget): Promise<readonly PolicyRevision[]> {
  const { cluster, name, policy, productNamespace } = target;
  try {
    const revisions = await listRevisions(cluster, policy, productNamespace);
    if (revisions.length === 0) {
      throw new CliError(`${name} has no revisions in namespace ${productNamespace}`, {
        hint: 'Does its controller run? --product-namespace names the namespace that Portcullis is installed in.',
      });
    }
    return revisions;
  } catch (error) {
    if (error instanceof ApiError && error.code === 403) {
      throw new CliError(`reading the revisions of ${name} is forbidden: ${error.message}`, {
        hint: `It needs ${REVISIONS_RIGHT} in namespace ${productNamespace}. \`portcullis rollout status\`, \`undo\`, \`pin\` and \`unpin\` work without it, and \`portcullis describe\` shows the state of the policy.`,
        cause: error,
      });
    }
    if (error instanceof ApiError && error.code === 404) {
      throw new CliError('the server has no PolicyRevisions', {
        hint: 'Its Portcullis is older than revisions, or not installed.',
        cause: error,
      });
    }
    throw error;
  }
}

/** The revisions of a policy, oldest first. @throws ApiError */
export async function listRevisions(
  cluster: Cluster,
  { metadata }: AdmissionPolicyObject,
  namespace: string,
): Promise<readonly PolicyRevision[]> {
  const labelSelector = `${POLICY_UID_LABEL}=${metadata.uid ?? ''}`;
  const { items } = await listAll(cluster, POLICY_REVISIONS, { namespace, labelSelector });
  return items.toSorted((one, other) => one.spec.revision - other.spec.revision);
}

/** As {@link readRevisions}; undefined when reading them is forbidden. */
export async function readableRevisions(target: RolloutTarget): Promise<readonly PolicyRevision[] | undefined> {
  return await unlessForbidden(readRevisions(target));
}

/** What was read; undefined when reading it is forbidden. */
export async function unlessForbidden<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    const cause = error instanceof CliError ? error.cause : error;
    if (cause instanceof ApiError && cause.code === 403) {
      return undefined;
    }
    throw error;
  }
}

/** The revision with this number. @throws CliError that lists the numbers that are kept */
export function revisionOf<Revision extends PolicyRevision | RevisionSummary>(
  { name }: Pick<RolloutTarget, 'name'>,
  revisions: readonly Revision[],
  wanted: number,
): Revision {
  const found = revisions.find((one) => numberOf(one) === wanted);
  if (found === undefined) {
    throw new CliError(`${name} has no revision ${wanted}`, {
      hint: `These are kept: ${numbersOf(revisions)}.`,
    });
  }
  return found;
}

function numberOf(revision: PolicyRevision | RevisionSummary): number {
  return 'metadata' in revision ? revision.spec.revision : revision.revision;
}

/** The numbers of revisions, such as `1, 2`. */
function numbersOf(revisions: readonly (PolicyRevision | RevisionSummary)[]): string {
  return revisions.map(numberOf).join(', ');
}

/** The revision that answers requests; undefined while there is none. */
export function servingRevision(revisions: readonly PolicyRevision[]): PolicyRevision | undefined {
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
export function candidateOf(revision: PolicyRevision): RollbackCandidate {
  const { order = 0, modules = [] } = revision.status ?? {};
  return { order, modules, snapshot: revision.spec.snapshot };
}

export function stateOf({ status }: PolicyRevision): string {
  return status?.state ?? 'Candidate';
}

/** When it entered its state. */
export function sinceOf({ status, metadata }: PolicyRevision): string {
  return status?.stateSince ?? metadata.creationTimestamp ?? '';
}

/** States whose reason is that of a failure. */
const FAILURE_STATES: ReadonlySet<string> = new Set(['Candidate', 'Failed']);

/**
 * Why the revision was made: a rollback, a refresh, or the changed fields of the spec; and the reason of its failure.
 * @param before the revision before, if it is kept
 */
export function causeOf(revision: PolicyRevision, before: PolicyRevision | undefined): string {
  const made = revisionCause(contentOf(revision), before && contentOf(before));
  const reason = FAILURE_STATES.has(stateOf(revision)) ? (revision.status?.reason ?? '') : '';
  return oneLine(reason === '' ? made : `${made} (${reason})`);
}

function contentOf({ spec, status }: PolicyRevision): RevisionContent {
  const { policyGeneration: generation, rollbackOf, refresh, snapshot } = spec;
  return { generation, rollbackOf, refresh, snapshot, modules: status?.modules ?? [] };
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
export function modulesOf(revision: PolicyRevision): readonly RevisionModule[] {
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
