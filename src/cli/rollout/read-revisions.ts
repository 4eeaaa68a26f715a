// Reads the revisions that are kept of a policy.
import { ApiError } from '../../cluster/index.ts';
import type { PolicyRevision, RevisionSummary } from '../../resources/index.ts';
import { listRevisions } from '../../rollout/history/index.ts';
import { CliError } from '../errors.ts';
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

/** As {@link readRevisions}; undefined when reading them is forbidden. */
export async function readableRevisions(target: RolloutTarget): Promise<readonly PolicyRevision[] | undefined> {
  return await unlessReadingForbidden(readRevisions(target));
}

/** What was read; undefined when reading it is forbidden. */
export async function unlessReadingForbidden<T>(reading: Promise<T>): Promise<T | undefined> {
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
