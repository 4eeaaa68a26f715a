import { ANNOTATIONS, isJsonObject, type JsonObject } from '../../resources/index.ts';
import { textOf } from '../../values/index.ts';
import type { Findings } from './findings.ts';

type Annotations = Readonly<Record<string, string>>;

/**
 * Warns of a new pin to a revision that failed, as far as the status of the policy lists it.
 *
 * @param policy as it is written, with its status
 */
export function warnOfFailedPin(
  policy: JsonObject,
  annotations: Annotations,
  before: Annotations,
  findings: Findings,
): void {
  const pinned = annotations[ANNOTATIONS.pin];
  if (pinned === undefined || pinned === before[ANNOTATIONS.pin]) {
    return;
  }
  const { status } = policy;
  const revisions = isJsonObject(status) && Array.isArray(status['revisions']) ? status['revisions'] : [];
  const failed = revisions
    .filter(isJsonObject)
    .find(({ revision, state }) => revision === Number(pinned) && state === 'Failed');
  if (failed !== undefined) {
    const reason = textOf(failed['reason']);
    const text = `revision ${pinned} failed${reason === '' ? '' : ` (${reason})`}: the last good one serves as long as it is pinned`;
    findings.warn('pin-failed', `metadata.annotations[${ANNOTATIONS.pin}]`, text);
  }
}
