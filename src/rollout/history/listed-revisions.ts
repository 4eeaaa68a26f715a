// The revisions in the status of a policy, for users who may not read PolicyRevisions.
import type { KubernetesObject, RevisionSummary } from '../../resources/index.ts';
import { parseExactJson } from '../../values/index.ts';
import type { HistoryRow } from './kept-revisions.ts';

/** A policy whose status lists its revisions. */
interface ListingPolicy extends Pick<KubernetesObject, 'metadata'> {
  readonly status?: { readonly revisions?: readonly RevisionSummary[]; readonly observedGeneration?: number };
}

/** The revisions in the status of a policy, oldest first. */
export function listedRevisions({ status }: ListingPolicy): readonly RevisionSummary[] {
  return (status?.revisions ?? []).toReversed();
}

/** Rows of the table. */
export function listedRows(revisions: readonly RevisionSummary[]): readonly HistoryRow[] {
  return revisions.map((summary) => ({
    ...summary,
    number: summary.revision,
    cause: listedCause(summary),
    digests: listedDigests(summary),
  }));
}

/** The cause of a revision, and the reason of its failure. */
export function listedCause({ cause, reason }: RevisionSummary): string {
  return reason === undefined ? cause : `${cause} (${reason})`;
}

/** Its digests, with the number of those that are not listed. */
export function listedDigests({ digests, omittedDigests }: RevisionSummary): readonly string[] {
  return [...digests, ...(omittedDigests === undefined ? [] : [`${omittedDigests} more`])];
}

/** The spec of a revision, if it is in the policy or its status. */
export function listedSpec(
  { metadata, spec, status }: ListingPolicy & { readonly spec: object },
  { declared, spec: text }: RevisionSummary,
): unknown {
  if (text !== undefined) {
    return parseExactJson(text);
  }
  // A newer spec may be another one than that of the revision.
  return declared === true && status?.observedGeneration === metadata.generation ? spec : undefined;
}
