// What is told of the rights that context-aware policies need, and have or not.
import { OBJECT_REASONS, CONTEXT_AWARE_CONDITION, type ReportedCondition } from './policy-server-conditions.ts';
import type { DeclaredKind, KindAccess } from './context-aware-rules.ts';

/** Kinds in a message, and policies of each. */
const MAX_TOLD = 10;
const MAX_POLICIES_TOLD = 3;

/** Label of ClusterRoles whose rules are added to what the controller may pass on to policy servers. */
export const CONTEXT_AWARE_LABEL = 'rbac.portcullis.dev/aggregate-to-context-aware';

export interface ContextAwareGrant {
  readonly granted: readonly KindAccess[];
  /** What the controller would have to have itself to pass it on (Kubernetes' rule against escalation). */
  readonly refused: readonly KindAccess[];
  readonly unknown: readonly DeclaredKind[];
}

export function grantCondition({ granted, refused, unknown }: ContextAwareGrant): ReportedCondition {
  const type = CONTEXT_AWARE_CONDITION;
  const unserved =
    unknown.length === 0
      ? []
      : [`the cluster does not serve ${told(unknown, ({ apiVersion, kind }) => `${apiVersion}/${kind}`)}`];
  if (refused.length > 0) {
    const rights = told(
      refused.map(({ declared, rule }) => ({ ...declared, rule })),
      ({ rule }) => `${rule.verbs.join(', ')} ${rule.resources.join()}${suffix(rule.apiGroups[0] ?? '')}`,
    );
    const message = [
      `the controller cannot pass on what it may not do itself: ${rights}. Put these rights into a ClusterRole with the label ${CONTEXT_AWARE_LABEL}: "true"`,
      ...unserved,
    ].join('; ');
    return { type, status: 'False', reason: OBJECT_REASONS.notGranted, message };
  }
  if (unserved.length > 0) {
    return { type, status: 'False', reason: OBJECT_REASONS.kindsNotServed, message: unserved.join() };
  }
  const message =
    granted.length === 0
      ? 'no policy declares kinds that it reads'
      : `the policies may read ${granted.length} ${granted.length === 1 ? 'kind' : 'kinds'}`;
  return { type, status: 'True', reason: OBJECT_REASONS.granted, message };
}

function told<T extends Pick<DeclaredKind, 'policies'>>(kinds: readonly T[], textOf: (kind: T) => string): string {
  const some = kinds.slice(0, MAX_TOLD).map((kind) => `${textOf(kind)} (${policiesText(kind.policies)})`);
  return [...some, ...(kinds.length > MAX_TOLD ? [`${kinds.length - MAX_TOLD} more`] : [])].join('; ');
}

function policiesText(policies: readonly string[]): string {
  const more = policies.length - MAX_POLICIES_TOLD;
  return `for ${policies.slice(0, MAX_POLICIES_TOLD).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

function suffix(group: string): string {
  return group === '' ? '' : `.${group}`;
}
