import { isDeepStrictEqual } from 'node:util';
import { forbidden, isJsonObject, POLICY_SERVER_LABEL, POLICY_UID_LABEL } from '../../resources/index.ts';
import type { FieldError, KubernetesObject } from '../../resources/index.ts';

/** What only the controller writes. */
const PARTS = ['spec', 'status'];
/** By these, revisions are found: by replicas, and by users. */
const LABELS = [POLICY_SERVER_LABEL, POLICY_UID_LABEL];

/**
 * What somebody other than the controller changes of a revision although only the controller may. Finalizers, owners and
 * annotations are anybody's who has the right: garbage collection and clean-ups must go on.
 */
export function foreignWrites(revision: KubernetesObject, old: KubernetesObject | undefined): readonly FieldError[] {
  if (old === undefined) {
    return [forbidden('spec', 'only the controller makes revisions: change the policy, and it makes one')];
  }
  const errors = PARTS.filter((part) => !isDeepStrictEqual(revision[part], old[part])).map((part) =>
    forbidden(part, 'only the controller changes revisions, and never their spec: change the policy instead'),
  );
  for (const label of LABELS) {
    if (labelOf(revision, label) !== labelOf(old, label)) {
      const detail = 'revisions are found by this label, which never changes: put it back';
      errors.push(forbidden(`metadata.labels[${label}]`, detail));
    }
  }
  return errors;
}

function labelOf({ metadata }: KubernetesObject, label: string): unknown {
  const labels: unknown = isJsonObject(metadata) ? metadata['labels'] : undefined;
  return isJsonObject(labels) && Object.hasOwn(labels, label) ? labels[label] : undefined;
}
