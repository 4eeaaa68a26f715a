import { isDeepStrictEqual } from 'node:util';
import { quote } from '../../../go/index.ts';
import { ApiError } from '../../../cluster/index.ts';
import { isJsonObject } from '../../../resources/index.ts';
import type { KubernetesObject } from '../../../resources/index.ts';
import type { UserInfo } from '../request/request.ts';
import { isAggregated } from './aggregation.ts';
import type { RoleReference } from './binding-index.ts';
import { forbiddenError } from './forbidden.ts';
import { describeRules, missingRules, quoteList, rulesOf } from './policy-rule.ts';
import type { PolicyRule } from './policy-rule.ts';
import type { RbacAuthorizer } from './rbac-authorizer.ts';
import { MASTERS_GROUP, RBAC_GROUP } from './rbac-resources.ts';

/** A write of an object, which may be a role or a binding. */
export interface RoleWrite {
  readonly user: UserInfo;
  readonly definition: { readonly group: string; readonly resource: string };
  readonly namespace: string | undefined;
  readonly object: KubernetesObject;
  /** Null when it is created. */
  readonly oldObject: KubernetesObject | null;
}

/** The rules that a user must have to write an aggregated role, because it may get any rule. */
const ALL_RIGHTS: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'], resourceNames: [], nonResourceURLs: [] },
  { verbs: ['*'], apiGroups: [], resources: [], resourceNames: [], nonResourceURLs: ['*'] },
];

/**
 * Prevents privilege escalation (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping).
 * A user who writes a role or binding must have all rights that it grants, or the right `escalate` (roles) or `bind` (bindings).
 * Writes of other objects are accepted.
 *
 * @throws ApiError 403; 404 when the role of a binding does not exist and the user may not `bind` it.
 */
export function checkEscalation(authorizer: RbacAuthorizer, write: RoleWrite): void {
  const { definition, user, object, oldObject } = write;
  if (definition.group !== RBAC_GROUP || user.groups.includes(MASTERS_GROUP)) {
    return;
  }
  if (oldObject !== null && onlyOwnershipChanges(object, oldObject)) {
    return;
  }
  switch (definition.resource) {
    case 'roles':
    case 'clusterroles':
      checkRole(authorizer, write);
      return;
    case 'rolebindings':
    case 'clusterrolebindings':
      checkBinding(authorizer, write);
      return;
    default:
  }
}

/** Whether a write changes nothing but owners and finalizers, as the garbage collector does. */
function onlyOwnershipChanges(object: KubernetesObject, old: KubernetesObject): boolean {
  return isDeepStrictEqual(withoutOwnership(object), withoutOwnership(old));
}

function withoutOwnership(object: KubernetesObject): object {
  const { ownerReferences: _owners, finalizers: _finalizers, managedFields: _fields, ...metadata } = object.metadata;
  return { ...object, metadata };
}

function checkRole(authorizer: RbacAuthorizer, write: RoleWrite): void {
  const { user, definition, namespace, object, oldObject } = write;
  const name = object.metadata.name ?? '';
  const mayEscalate = authorizer.authorize({
    user,
    verb: 'escalate',
    ...definition,
    ...(namespace === undefined ? {} : { namespace }),
    // Create requests have no name.
    name: oldObject === null ? '' : name,
  });
  if (mayEscalate.allowed) {
    return;
  }
  requireRules(authorizer, write, rulesOf(object));
  if (isAggregated(object) || isAggregated(oldObject)) {
    const { rules } = authorizer.rulesFor(user);
    if (missingRules(rules, ALL_RIGHTS).length > 0) {
      throw forbiddenError(definition, name, 'must have cluster-admin privileges to use the aggregationRule');
    }
  }
}

function checkBinding(authorizer: RbacAuthorizer, write: RoleWrite): void {
  const { user, namespace = '', object } = write;
  const role = roleOf(object);
  const mayBind = authorizer.authorize({
    user,
    verb: 'bind',
    group: RBAC_GROUP,
    resource: role.kind === 'Role' ? 'roles' : 'clusterroles',
    namespace,
    name: role.name,
  });
  if (mayBind.allowed) {
    return;
  }
  const rules = authorizer.roleRules(role, namespace);
  if (rules === undefined) {
    // The error of API servers names the resource of the binding, not that of the missing role.
    throw ApiError.notFound(write.definition, role.name);
  }
  requireRules(authorizer, write, rules);
}

function roleOf({ roleRef }: KubernetesObject): RoleReference {
  const { kind, name } = isJsonObject(roleRef) ? roleRef : {};
  return { kind: typeof kind === 'string' ? kind : '', name: typeof name === 'string' ? name : '' };
}

function requireRules(
  authorizer: RbacAuthorizer,
  { user, definition, namespace, object }: RoleWrite,
  wanted: readonly PolicyRule[],
): void {
  const held = authorizer.rulesFor(user, namespace);
  const missing = missingRules(held.rules, wanted);
  if (missing.length === 0) {
    return;
  }
  const who = `user ${quote(user.username)} (groups=${quoteList(user.groups)})`;
  const what = `is attempting to grant RBAC permissions not currently held:\n${describeRules(missing).join('\n')}`;
  const errors = held.error === '' ? '' : `; resolution errors: [${held.error}]`;
  throw forbiddenError(definition, object.metadata.name ?? '', `${who} ${what}${errors}`);
}
