// The revisions that are kept of a policy, and their properties as text.
import { isDeepStrictEqual } from 'node:util';
import { ApiError, type Cluster, listAll } from '../../cluster/index.ts';
import {
  type AdmissionPolicyObject,
  ageOf,
  isGroupSpec,
  POLICY_REVISIONS,
  POLICY_UID_LABEL,
  type PolicyRevision,
  servesInsteadOf,
  type ServingTurn,
  snapshotOf,
} from '../../resources/index.ts';
import { movedModules, type RollbackCandidate } from '../../control/index.ts';
import { CliError } from '../errors.ts';
import { oneLine } from '../table.ts';
import type { RolloutTarget } from './rollout-target.ts';

/** Hexadecimal digits of a short digest: 48 bits, enough to tell the modules of one policy apart. */
const SHORT_DIGEST_LENGTH = 12;

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
        hint: `It needs the verb list on policyrevisions.portcullis.dev in namespace ${productNamespace}. \`portcullis rollout status\`, \`undo\`, \`pin\` and \`unpin\` work without it, and \`portcullis describe\` shows the state of the policy.`,
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
  try {
    return await readRevisions(target);
  } catch (error) {
    if (error instanceof CliError && error.cause instanceof ApiError && error.cause.code === 403) {
      return undefined;
    }
    throw error;
  }
}

/** The revision with this number. @throws CliError that lists the numbers that are kept */
export function revisionOf(
  { name }: Pick<RolloutTarget, 'name'>,
  revisions: readonly PolicyRevision[],
  wanted: number,
): PolicyRevision {
  const found = revisions.find(({ spec }) => spec.revision === wanted);
  if (found === undefined) {
    throw new CliError(`${name} has no revision ${wanted}`, {
      hint: `These are kept: ${numbersOf(revisions)}.`,
    });
  }
  return found;
}

/** The numbers of revisions, such as `1, 2`. */
export function numbersOf(revisions: readonly PolicyRevision[]): string {
  return revisions.map(({ spec }) => spec.revision).join(', ');
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

/** The time in its state, such as `5m`. */
export function sinceText({ status, metadata }: PolicyRevision, now: number): string {
  return ageOf(status?.stateSince ?? metadata.creationTimestamp ?? '', now);
}

/** States whose reason is that of a failure. */
const FAILURE_STATES: ReadonlySet<string> = new Set(['Candidate', 'Failed']);

/**
 * Why the revision was made: a rollback, a refresh, or the changed fields of the spec; and the reason of its failure.
 * @param before the revision before, if it is kept
 */
export function causeOf(revision: PolicyRevision, before: PolicyRevision | undefined): string {
  const { spec, status } = revision;
  const made =
    spec.rollbackOf === undefined
      ? (refreshText(revision, before) ??
        [`generation ${spec.policyGeneration}`, ...changes(spec.snapshot, before?.spec)].join(': '))
      : `rollback to ${spec.rollbackOf}`;
  const reason = FAILURE_STATES.has(stateOf(revision)) ? (status?.reason ?? '') : '';
  return oneLine(reason === '' ? made : `${made} (${reason})`);
}

/** Of a revision that was made by a refresh: the modules that it replaces. */
function refreshText({ spec, status }: PolicyRevision, before: PolicyRevision | undefined): string | undefined {
  const isRefresh =
    before !== undefined &&
    spec.refresh !== undefined &&
    spec.refresh !== before.spec.refresh &&
    isDeepStrictEqual(spec.snapshot, before.spec.snapshot);
  if (!isRefresh) {
    return undefined;
  }
  const moved = movedModules(before.status?.modules ?? [], status?.modules ?? []);
  const texts = moved.flatMap(({ from, to }) =>
    from === undefined ? [] : [`${shortDigest(to)} instead of ${shortDigest(from)}`],
  );
  return ['refresh', ...(texts.length === 0 ? [] : [texts.join(', ')])].join(': ');
}

function changes(snapshot: unknown, before: PolicyRevision['spec'] | undefined): string[] {
  if (before === undefined) {
    return [];
  }
  const [now, then] = [fields(snapshot), fields(before.snapshot)];
  const names = new Set([...now.keys(), ...then.keys()]);
  const changed = [...names].sort().filter((name) => !isDeepStrictEqual(now.get(name), then.get(name)));
  return changed.length === 0 ? [] : [changed.join(', ')];
}

function fields(snapshot: unknown): ReadonlyMap<string, unknown> {
  return new Map(typeof snapshot === 'object' && snapshot !== null ? Object.entries(snapshot) : []);
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

/** The short digests of its modules. */
export function digestsText(revision: PolicyRevision): string {
  const digests = (revision.status?.modules ?? []).map(({ digest }) => shortDigest(digest));
  return digests.length === 0 ? '-' : oneLine([...new Set(digests)].join(', '), 60);
}

function shortDigest(digest: string): string {
  const [algorithm = '', hex = ''] = digest.split(':');
  return algorithm === 'sha256' ? `${algorithm}:${hex.slice(0, SHORT_DIGEST_LENGTH)}` : digest;
}
