import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../../../cluster/index.ts';
import type { KubernetesObject } from '../../../resources/index.ts';
import { ListedState } from '../testing/listed-state.ts';
import { checkEscalation } from './escalation.ts';
import type { RoleWrite } from './escalation.ts';
import { RbacAuthorizer } from './rbac-authorizer.ts';

const GROUP = 'rbac.authorization.k8s.io';
const PODS = { verbs: ['get'], apiGroups: [''], resources: ['pods'] };

const role = (rules: readonly object[], metadata: object = {}): KubernetesObject => ({
  apiVersion: `${GROUP}/v1`,
  kind: 'Role',
  metadata: { name: 'r', namespace: 'shop', ...metadata },
  rules,
});

function write(object: KubernetesObject, rest: Partial<RoleWrite> = {}): RoleWrite {
  return {
    user: { username: 'jane', groups: ['devs'] },
    definition: { group: GROUP, resource: 'roles' },
    namespace: 'shop',
    object,
    oldObject: null,
    ...rest,
  };
}

describe('escalation', () => {
  const authorizer = new RbacAuthorizer(new ListedState());

  it('is refused with the missing rules', () => {
    assert.throws(
      () => checkEscalation(authorizer, write(role([PODS]))),
      (error) =>
        error instanceof ApiError &&
        error.code === 403 &&
        error.message ===
          'roles.rbac.authorization.k8s.io "r" is forbidden: user "jane" (groups=["devs"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["pods"], Verbs:["get"]}',
    );
  });

  it('is nothing that members of system:masters can do, nor other objects', () => {
    checkEscalation(authorizer, write(role([PODS]), { user: { username: 'root', groups: ['system:masters'] } }));
    checkEscalation(authorizer, write(role([PODS]), { definition: { group: '', resource: 'pods' } }));
  });

  it('does not include changes of a role’s owners, but of anything else', () => {
    const old = role([PODS]);
    checkEscalation(authorizer, write(role([PODS], { finalizers: ['a/b'] }), { oldObject: old }));
    assert.throws(() => checkEscalation(authorizer, write(role([PODS], { labels: { a: 'b' } }), { oldObject: old })));
  });
});
