import { DEFAULT_POLICY_SERVER, forbidden, type JsonObject, own } from '../../resources/index.ts';
import type { Findings } from './findings.ts';
import { objectAt } from './own-kinds-review.ts';

/** Rejects changes of fields that stay as they are, as Kubewarden does. */
export function checkFixedFields(object: JsonObject, old: JsonObject, findings: Findings): void {
  checkMode(object, old, findings);
  checkPolicyServer(object, old, findings);
}

/**
 * From protect to monitor. This is no rule of the schema, because the controller makes this change when a user rolls back to a
 * revision in monitor mode.
 */
function checkMode(object: JsonObject, old: JsonObject, findings: Findings): void {
  if (fieldOf(object, 'mode') === 'monitor' && fieldOf(old, 'mode') !== 'monitor') {
    const detail =
      'field cannot transition from protect to monitor. Recreate instead, or go back to a revision in monitor mode by `portcullis rollout undo`';
    findings.reject('mode-change', forbidden('spec.mode', detail));
  }
}

/** This is a rule of the schema as well, but the cluster may serve another one. */
function checkPolicyServer(object: JsonObject, old: JsonObject, findings: Findings): void {
  const [now, before] = [object, old].map((one) => fieldOf(one, 'policyServer') ?? DEFAULT_POLICY_SERVER);
  if (now !== before) {
    const detail =
      'field is immutable. Apply the policy under another name, wait until that one is enforced, and delete this one';
    findings.reject('policy-server-change', forbidden('spec.policyServer', detail));
  }
}

function fieldOf(object: JsonObject, field: string): unknown {
  return own(objectAt(object, 'spec') ?? {}, field);
}
