// The revisions of a policy as a table.
import { ageOf } from '../../resources/index.ts';
import { shortDigest } from '../../control/index.ts';
import type { HistoryRow } from '../../rollout/history/index.ts';
import { oneLine, table } from '../table.ts';
import { pinOf, type RolledOutPolicy } from './rollout-target.ts';

/** Without a line break at the end. @param now milliseconds since 1970 */
export function historyTable(policy: RolledOutPolicy, rows: readonly HistoryRow[], now = Date.now()): string {
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

/** Digests as short ones, without repetitions. */
export function digestsText(digests: readonly string[]): string {
  return digests.length === 0 ? '-' : oneLine([...new Set(digests.map(shortDigest))].join(', '), 60);
}
