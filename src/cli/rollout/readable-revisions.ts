// The revisions of a policy that a user may read.
import { MAX_LISTED_REVISIONS, type RevisionSummary } from '../../resources/index.ts';
import { listedRevisions, listedSpec } from '../../rollout/history/index.ts';
import { CliError } from '../errors.ts';
import { readRevisions, REVISIONS_RIGHT, unlessReadingForbidden } from './read-revisions.ts';
import type { RolloutTarget } from './rollout-target.ts';
import type { PolicyRevision } from '../../resources/index.ts';

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
  const revisions = await unlessReadingForbidden(readRevisions(target));
  if (revisions !== undefined) {
    return { from: 'revisions', revisions };
  }
  process.stderr.write(
    `note: you may not read PolicyRevisions in namespace ${target.productNamespace}: this is what the status of the policy says, with at most ${MAX_LISTED_REVISIONS} revisions\n`,
  );
  return { from: 'status', revisions: listed };
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
