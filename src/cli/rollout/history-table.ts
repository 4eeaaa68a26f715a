// The revisions of a policy as a table.
import { type AdmissionPolicyObject, ageOf, type PolicyRevision } from '../../resources/index.ts';
import { shortDigest } from '../../control/index.ts';
import { oneLine, table } from '../table.ts';
import { causeOf, sinceOf, stateOf } from './revision-history.ts';
import { pinOf } from './rollout-target.ts';

/** A revision in the table. */
export interface HistoryRow {
  readonly number: number;
  readonly state: string;
  /** When it entered the state. */
  readonly since: string;
  readonly cause: string;
  readonly digests: readonly string[];
}

/** Without a line break at the end. @param now milliseconds since 1970 */
export function historyTable(policy: AdmissionPolicyObject, rows: readonly HistoryRow[], now = Date.now()): string {
  const pin = pinOf(policy);
  return table<HistoryRow>(
    [
      { header: 'REVISION', cell: ({ number }) => String(number) },
      { header: 'STATE', cell: ({ number, state }) => `${state}${String(number) === pin ? ', pinned' : ''}` },
      { header: 'SINCE', cell: ({ since }) => ageOf(since, now) },
      { header: 'CAUSE', cell: ({ cause }) => oneLine(cause) },
      { header: 'DIGEST', cell: ({ digests }) => digestsText(digests) },
    ],
    rows,
  );
}

/** The rows for revisions, oldest first. */
export function historyRows(revisions: readonly PolicyRevision[]): readonly HistoryRow[] {
  return revisions.map((revision) => ({
    number: revision.spec.revision,
    state: stateOf(revision),
    since: sinceOf(revision),
    cause: causeOf(revision, revisionBefore(revisions, revision)),
    digests: (revision.status?.modules ?? []).map(({ digest }) => digest),
  }));
}

/** The newest kept revision before this one. */
export function revisionBefore(
  revisions: readonly PolicyRevision[],
  revision: PolicyRevision,
): PolicyRevision | undefined {
  return revisions[revisions.indexOf(revision) - 1];
}

/** Digests as short ones, without repetitions. */
export function digestsText(digests: readonly string[]): string {
  return digests.length === 0 ? '-' : oneLine([...new Set(digests.map(shortDigest))].join(', '), 60);
}
