import { forbidden, type JsonObject, own } from '../../resources/index.ts';
import type { Findings } from './findings.ts';
import { objectAt } from './own-kinds-review.ts';

/**
 * Rejects the change of a policy's mode from protect to monitor, as Kubewarden does. This is no rule of the schema, because
 * the controller makes this change when a user rolls back to a revision in monitor mode.
 */
export function checkModeChange(object: JsonObject, old: JsonObject, findings: Findings): void {
  if (modeOf(object) === 'monitor' && modeOf(old) !== 'monitor') {
    const detail =
      'field cannot transition from protect to monitor. Recreate instead, or go back to a revision in monitor mode by `portcullis rollout undo`';
    findings.reject('mode-change', forbidden('spec.mode', detail));
  }
}

function modeOf(object: JsonObject): unknown {
  return own(objectAt(object, 'spec') ?? {}, 'mode');
}
