// The revisions in the status of a policy, for users who may not read PolicyRevisions.
import { MAX_LISTED_REVISIONS, type RevisionSummary } from '../../resources/index.ts';
import { parseExactJson } from '../../values/index.ts';
import { CliError } from '../errors.ts';
import type { HistoryRow } from './history-table.ts';
import { readRevisions, REVISIONS_RIGHT, unlessForbidden } from './revision-history.ts';
import type { RolloutTarget } from './rollout-target.ts';
import type { AdmissionPolicyObject, PolicyRevision } from '../../resources/index.ts';

/** The revisions of a policy: those that are kept, or those that its status lists. */
export type ReadableRevisions =
  | { readonly from: 'revisions'; readonly revisions: readonly PolicyRevision[] }
  | { readonly from: 'status'; readonly revisions: readonly RevisionSummary[] };

/**
 * The revisions of the policy, oldest first. Where reading them is forbidden, those of its status, with a note that says so.
 * @throws CliError when there are none
 */
export async function revisionsOrListed(target: RolloutTarget): Promise<ReadableRevisions> {
  const listed = listedRevisions(target.policy);
  if (listed.length === 0) {
    return { from: 'revisions', revisions: await readRevisions(target) };
  }
  const revisions = await unlessForbidden(readRevisions(target));
  if (revisions !== undefined) {
    return { from: 'revisions', revisions };
  }
  process.stderr.write(
    `note: you may not read PolicyRevisions in namespace ${target.productNamespace}: this is what the status of the policy says, with at most ${MAX_LISTED_REVISIONS} revisions\n`,
  );
  return { from: 'status', revisions: listed };
}

/** The revisions in the status of a policy, oldest first. */
export function listedRevisions({ status }: AdmissionPolicyObject): readonly RevisionSummary[] {
  return (status?.revisions ?? []).toReversed();
}

/** Rows of the table. */
export function listedRows(revisions: readonly RevisionSummary[]): readonly HistoryRow[] {
  return revisions.map((summary) => ({
    ...summary,
    number: summary.revision,
    cause: listedCause(summary),
    digests: digestsOf(summary),
  }));
}

/** The cause of a revision, and the reason of its failure. */
export function listedCause({ cause, reason }: RevisionSummary): string {
  return reason === undefined ? cause : `${cause} (${reason})`;
}

/** Its digests, with the number of those that are not listed. */
export function digestsOf({ digests, omittedDigests }: RevisionSummary): readonly string[] {
  return [...digests, ...(omittedDigests === undefined ? [] : [`${omittedDigests} more`])];
}

/** The spec of a revision, if it is in the policy or its status. */
export function listedSpec(
  { metadata, spec, status }: AdmissionPolicyObject,
  { declared, spec: text }: RevisionSummary,
): unknown {
  if (text !== undefined) {
    return parseExactJson(text);
  }
  // A newer spec may be another one than that of the revision.
  return declared === true && status?.observedGeneration === metadata.generation ? spec : undefined;
}

/** The spec of a revision. @throws CliError that says which specs the status has */
export function requiredSpec({ name, policy, productNamespace }: RolloutTarget, summary: RevisionSummary): unknown {
  const spec = listedSpec(policy, summary);
  if (spec === undefined) {
    const has = listedRevisions(policy).filter((one) => listedSpec(policy, one) !== undefined);
    throw new CliError(`the status of ${name} does not contain the spec of revision ${summary.revision}`, {
      hint: `It has ${has.length === 0 ? 'none' : `those of revisions ${has.map(({ revision }) => revision).join(', ')}`}. To read the others, you need ${REVISIONS_RIGHT} in namespace ${productNamespace}.`,
    });
  }
  return spec;
}
