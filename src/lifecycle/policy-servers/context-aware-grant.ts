// The condition about the rights of context-aware policies.
import { CONTEXT_AWARE_LABEL } from '../../resources/index.ts';
import { OBJECT_REASONS, CONTEXT_AWARE_CONDITION, type ReportedCondition } from './policy-server-conditions.ts';
import type { DeclaredKind, KindAccess } from './context-aware-rules.ts';
import { listed } from '../../values/index.ts';

/** Kinds in a message, and policies of each; further ones are counted. */
const MAX_KINDS = 10;
const MAX_POLICIES = 3;

export interface ContextAwareGrant {
  readonly granted: readonly KindAccess[];
  /** Rules that the controller would need itself to grant them (Kubernetes prevents privilege escalation). */
  readonly refused: readonly KindAccess[];
  readonly unknown: readonly DeclaredKind[];
}

export function grantCondition({ granted, refused, unknown }: ContextAwareGrant): ReportedCondition {
  const type = CONTEXT_AWARE_CONDITION;
  const unserved =
    unknown.length === 0
      ? []
      : [`the cluster does not serve ${listText(unknown, ({ apiVersion, kind }) => `${apiVersion}/${kind}`)}`];
  if (refused.length > 0) {
    const rights = listText(
      refused.map(({ declared, rule }) => ({ ...declared, rule })),
      ({ rule }) => `${rule.verbs.join(', ')} ${rule.resources.join()}${suffix(rule.apiGroups[0] ?? '')}`,
    );
    const message = [
      `the controller cannot grant rights that it does not have: ${rights}. Add these rights to a ClusterRole with the label ${CONTEXT_AWARE_LABEL}: "true"`,
      ...unserved,
    ].join('; ');
    return { type, status: 'False', reason: OBJECT_REASONS.notGranted, message };
  }
  if (unserved.length > 0) {
    return { type, status: 'False', reason: OBJECT_REASONS.kindsNotServed, message: unserved.join() };
  }
  const message =
    granted.length === 0
      ? 'no policy declares contextAwareResources'
      : `the policies may read ${granted.length} ${granted.length === 1 ? 'kind' : 'kinds'}`;
  return { type, status: 'True', reason: OBJECT_REASONS.granted, message };
}

function listText<T extends Pick<DeclaredKind, 'policies'>>(kinds: readonly T[], textOf: (kind: T) => string): string {
  const some = kinds.slice(0, MAX_KINDS).map((kind) => `${textOf(kind)} (${policiesText(kind.policies)})`);
  return [...some, ...(kinds.length > MAX_KINDS ? [`${kinds.length - MAX_KINDS} more`] : [])].join('; ');
}

function policiesText(policies: readonly string[]): string {
  return `for ${listed(policies, MAX_POLICIES)}`;
}

function suffix(group: string): string {
  return group === '' ? '' : `.${group}`;
}
