import { groupVersionOf, type KubernetesObject, GOVERNANCE_GROUP } from '../../resources/index.ts';
import { textOf, valueAt } from '../../values/index.ts';
import { isOlderSpec, kstatusOf, type ObjectState } from './kstatus.ts';

/** The compliance of an object, or why it is not known. */
export type Compliance =
  | { readonly state: string; readonly detail: string }
  | { readonly unknown: 'NoStatus' | 'Stale'; readonly detail: string };

const STATES: Readonly<Record<ObjectState['status'], string>> = {
  Current: 'Compliant',
  InProgress: 'Pending',
  Failed: 'NonCompliant',
  Terminating: 'Pending',
};

/**
 * Whether an object is compliant: by `status.compliant`, by the violations of a Gatekeeper constraint, and otherwise by
 * kstatus. A status about an older spec is no answer.
 */
export function complianceOf(object: KubernetesObject): Compliance {
  if (isConstraintTemplate(object)) {
    return { state: 'Compliant', detail: '' };
  }
  if (isOlderSpec(object)) {
    return { unknown: 'Stale', detail: 'its status is about an older spec' };
  }
  const { group } = groupVersionOf(object.apiVersion);
  if (group === 'constraints.gatekeeper.sh') {
    return constraintCompliance(object);
  }
  const compliant = textOf(valueAt(object, 'status', 'compliant'));
  if (compliant !== '') {
    return { state: compliant, detail: '' };
  }
  const state = group === GOVERNANCE_GROUP ? undefined : kstatusOf(object);
  return state === undefined
    ? { unknown: 'NoStatus', detail: '' }
    : { state: STATES[state.status], detail: state.message };
}

/** Gatekeeper writes no compliance to a ConstraintTemplate: one that exists is compliant. */
export function isConstraintTemplate({
  apiVersion,
  kind,
}: {
  readonly apiVersion: string;
  readonly kind: string;
}): boolean {
  return kind === 'ConstraintTemplate' && groupVersionOf(apiVersion).group === 'templates.gatekeeper.sh';
}

function constraintCompliance(object: KubernetesObject): Compliance {
  const violations = valueAt(object, 'status', 'totalViolations');
  return typeof violations === 'number'
    ? {
        state: violations === 0 ? 'Compliant' : 'NonCompliant',
        detail: violations === 0 ? '' : `${violations} violations`,
      }
    : { unknown: 'NoStatus', detail: '' };
}
