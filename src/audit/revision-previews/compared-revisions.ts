// Which revision a preview compares with which one (pure).
import {
  isRevisedGovernanceKind,
  type PolicyRevision,
  servesInsteadOf,
  type ServingTurn,
} from '../../resources/index.ts';

/** How long after it began to serve a revision is previewed, if it was not before. A long queue ends with it. Milliseconds. */
const LATE_MS = 10 * 60_000;

export interface ComparedRevisions {
  readonly revision: PolicyRevision;
  /** What serves, or served, before it. Undefined: nothing did. */
  readonly base: PolicyRevision | undefined;
}

/**
 * What a preview of the revision compares. Undefined: there is to be none, because it is previewed, retired, or serves for long.
 * @param all the revisions of its policy @param now milliseconds since 1970
 */
export function comparedRevisions(
  revision: PolicyRevision,
  all: readonly PolicyRevision[],
  now: number,
): ComparedRevisions | undefined {
  const { state, preview, servingSince = '', order = 0 } = revision.status ?? {};
  const others = all.filter(
    ({ spec }) => spec.policy.uid === revision.spec.policy.uid && spec.revision !== revision.spec.revision,
  );
  if (isRevisedGovernanceKind(revision.spec.policy.kind)) {
    return undefined;
  }
  const isComputed = preview?.computedAt !== undefined;
  if (state === 'Validated' || state === 'Staged') {
    const base = lastOf(others.filter(({ status }) => status?.state === 'Serving'));
    return isComputed && preview.comparedWith === base?.spec.revision ? undefined : { revision, base };
  }
  if (state !== 'Serving' || isComputed || now - Date.parse(servingSince) > LATE_MS) {
    return undefined;
  }
  const base = lastOf(others.filter((one) => turnOf(one).order > 0 && servesInsteadOf(turnOf(revision), turnOf(one))));
  // The revision that served before may be removed already. Then nothing is known of what changed.
  return base === undefined && order > 1 ? undefined : { revision, base };
}

/** The one that serves, or served last. */
function lastOf(revisions: readonly PolicyRevision[]): PolicyRevision | undefined {
  return revisions.reduce<PolicyRevision | undefined>(
    (last, one) => (last === undefined || servesInsteadOf(turnOf(one), turnOf(last)) ? one : last),
    undefined,
  );
}

function turnOf({ spec, status }: PolicyRevision): ServingTurn {
  return { order: status?.order ?? 0, number: spec.revision };
}
