import { timeText } from '../conditions.ts';
import type { AuditStatus } from '../kind-declarations/audit-status.ts';

/** Why nobody keeps what a policy says about existing objects current. */
export interface AuditAbsence {
  /** Milliseconds since 1970. */
  readonly since: number;
  /** Default: no auditor works. */
  readonly because?: Pick<AuditStatus, 'reason' | 'message' | 'kinds'>;
}

/** What the auditor knew of this generation stays, as what was known then. */
const STOPPED = { reason: 'AuditorStopped', message: 'no auditor works: what was known is out of date' } as const;
const NONE = { reason: 'NoAuditor', message: 'no auditor works: existing objects are not judged' } as const;

/**
 * The part of a policy's status about existing objects while no auditor keeps it current. The same for the same status before, also
 * at another time.
 * @param generation of the policy
 */
export function unknownAudit(
  before: AuditStatus | undefined,
  generation: number,
  { since, because }: AuditAbsence,
): AuditStatus {
  const known = before?.counts !== undefined && before.observedGeneration === generation ? before : undefined;
  const { summary: _, ...rest } = known ?? {};
  const text = before?.state === 'Unknown' ? (before.since ?? timeText(since)) : timeText(since);
  const { message, ...why } = because ?? (known === undefined ? NONE : STOPPED);
  return { ...rest, ...why, summary: 'Unknown', state: 'Unknown', message: `${message} (since ${text})`, since: text };
}
