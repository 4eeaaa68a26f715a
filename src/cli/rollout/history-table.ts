// The revisions of a policy as a table.
import type { AdmissionPolicyObject, PolicyRevision } from '../../resources/index.ts';
import { table } from '../table.ts';
import { causeOf, digestsText, sinceText, stateOf } from './revision-history.ts';
import { pinOf } from './rollout-target.ts';

/** Without a line break at the end. @param now milliseconds since 1970 */
export function historyTable(
  policy: AdmissionPolicyObject,
  revisions: readonly PolicyRevision[],
  now = Date.now(),
): string {
  const pin = pinOf(policy);
  const isPinned = ({ spec }: PolicyRevision): boolean => String(spec.revision) === pin;
  return table<PolicyRevision>(
    [
      { header: 'REVISION', cell: ({ spec }) => String(spec.revision) },
      { header: 'STATE', cell: (revision) => `${stateOf(revision)}${isPinned(revision) ? ', pinned' : ''}` },
      { header: 'SINCE', cell: (revision) => sinceText(revision, now) },
      { header: 'CAUSE', cell: (revision) => causeOf(revision, revisionBefore(revisions, revision)) },
      { header: 'DIGEST', cell: digestsText },
    ],
    revisions,
  );
}

/** The newest kept revision before this one. */
export function revisionBefore(
  revisions: readonly PolicyRevision[],
  revision: PolicyRevision,
): PolicyRevision | undefined {
  return revisions[revisions.indexOf(revision) - 1];
}
