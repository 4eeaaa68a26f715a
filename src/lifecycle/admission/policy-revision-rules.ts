import { isDeepStrictEqual } from 'node:util';
import {
  AUDITOR_ACCOUNT,
  forbidden,
  isJsonObject,
  POLICY_SERVER_LABEL,
  POLICY_UID_LABEL,
} from '../../resources/index.ts';
import type { FieldError, KubernetesObject } from '../../resources/index.ts';

/** Fields that only the controller writes. */
const PARTS = ['spec', 'status'];
/** Labels by which replicas and users select revisions. */
const LABELS = [POLICY_SERVER_LABEL, POLICY_UID_LABEL];

/**
 * An error for each change of a revision that only the controller may make. Other users may change finalizers, owners and
 * annotations, so that garbage collection and clean-ups work; the auditor of the same namespace may change the preview.
 */
export function forbiddenRevisionChanges(
  revision: KubernetesObject,
  old: KubernetesObject | undefined,
  username: string,
): readonly FieldError[] {
  if (old === undefined) {
    return [forbidden('spec', 'only the controller creates revisions: change the policy instead')];
  }
  const isAuditor = username === `system:serviceaccount:${old.metadata.namespace}:${AUDITOR_ACCOUNT}`;
  const compared = (object: KubernetesObject): KubernetesObject => (isAuditor ? withoutPreview(object) : object);
  const [after, before] = [compared(revision), compared(old)];
  const errors = PARTS.filter((part) => !isDeepStrictEqual(after[part], before[part])).map((part) =>
    forbidden(part, 'only the controller changes revisions, and never their spec: change the policy instead'),
  );
  for (const label of LABELS) {
    if (labelOf(revision, label) !== labelOf(old, label)) {
      const detail = 'revisions are selected by this label, which must not change: restore its value';
      errors.push(forbidden(`metadata.labels[${label}]`, detail));
    }
  }
  return errors;
}

function withoutPreview(revision: KubernetesObject): KubernetesObject {
  const { status } = revision;
  if (!isJsonObject(status)) {
    return revision;
  }
  const { preview: _, ...kept } = status;
  return { ...revision, status: kept };
}

function labelOf({ metadata }: KubernetesObject, label: string): unknown {
  const labels: unknown = isJsonObject(metadata) ? metadata['labels'] : undefined;
  return isJsonObject(labels) && Object.hasOwn(labels, label) ? labels[label] : undefined;
}
