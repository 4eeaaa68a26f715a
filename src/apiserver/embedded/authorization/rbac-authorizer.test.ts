import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubernetesObject } from '../../../resources/index.ts';
import type { AccessAttributes, ClusterState, UserInfo } from '../request/request.ts';
import { ListedState } from '../testing/listed-state.ts';
import { BOOTSTRAP_RBAC } from './bootstrap-rbac.ts';
import { RbacAuthorizer } from './rbac-authorizer.ts';

const API_VERSION = 'rbac.authorization.k8s.io/v1';

function role(name: string, rules: readonly object[], rest: object = {}): KubernetesObject {
  return { apiVersion: API_VERSION, kind: 'ClusterRole', metadata: { name }, rules, ...rest };
}

function localRole(name: string, namespace: string, rules: readonly object[]): KubernetesObject {
  return { apiVersion: API_VERSION, kind: 'Role', metadata: { name, namespace }, rules };
}

function binding(name: string, kind: string, target: string, username: string, namespace?: string): KubernetesObject {
  return {
    apiVersion: API_VERSION,
    kind: namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding',
    metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
    subjects: [{ kind: 'User', name: username }],
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name: target },
  };
}

const PODS = { verbs: ['get'], apiGroups: [''], resources: ['pods'] };
const JANE: UserInfo = { username: 'jane', groups: [] };

function getPods(user: UserInfo = JANE, rest: Partial<AccessAttributes> = {}): AccessAttributes {
  return { user, verb: 'get', group: '', resource: 'pods', namespace: 'shop', ...rest };
}

describe('the RBAC authoriser', () => {
  it('denies everything without bindings, and gives no reason', () => {
    const authorizer = new RbacAuthorizer(new ListedState());
    assert.deepEqual(authorizer.authorize(getPods()), { allowed: false, reason: '' });
  });

  it('allows system:masters everything, independent of bindings', () => {
    const authorizer = new RbacAuthorizer(new ListedState());
    const root = { username: 'root', groups: ['system:masters'] };
    assert.deepEqual(authorizer.authorize(getPods(root)), { allowed: true, reason: '' });
    assert.ok(authorizer.authorize({ user: root, verb: 'get', path: '/x' }).allowed);
  });

  it('sees roles and bindings as they change', () => {
    const state = new ListedState();
    const authorizer = new RbacAuthorizer(state);
    const bound = binding('b', 'Role', 'r', 'jane', 'shop');
    state.put(bound);
    assert.equal(authorizer.authorize(getPods()).reason, 'RBAC: role.rbac.authorization.k8s.io "r" not found');
    state.put(localRole('r', 'shop', [PODS]));
    assert.deepEqual(authorizer.authorize(getPods()), {
      allowed: true,
      reason: 'RBAC: allowed by RoleBinding "b/shop" of Role "r" to User "jane"',
    });
    assert.ok(!authorizer.authorize(getPods(JANE, { namespace: 'other' })).allowed);
    state.put(localRole('r', 'shop', []));
    assert.ok(!authorizer.authorize(getPods()).allowed);
    state.put(localRole('r', 'shop', [PODS]));
    state.remove(bound);
    assert.ok(!authorizer.authorize(getPods()).allowed);
  });

  it('reads bindings once per change, not per question', () => {
    const state = new ListedState([role('r', [PODS]), binding('b', 'ClusterRole', 'r', 'jane')]);
    let lists = 0;
    const counting: ClusterState = {
      get: (type, namespace, name) => state.get(type, namespace, name),
      revisionOf: (type) => state.revisionOf(type),
      list: (type, namespace) => {
        lists += 1;
        return state.list(type, namespace);
      },
    };
    const authorizer = new RbacAuthorizer(counting);
    for (let index = 0; index < 10; index += 1) {
      assert.ok(authorizer.authorize(getPods(JANE, { namespace: '' })).allowed);
    }
    assert.equal(lists, 1);
    state.put(binding('c', 'ClusterRole', 'r', 'sam'));
    authorizer.authorize(getPods(JANE, { namespace: '' }));
    assert.equal(lists, 2);
  });

  it('gathers the rules of aggregated roles, which may aggregate each other in a circle', () => {
    const select = (name: string): object => ({
      aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [name]: 'yes' } }] },
    });
    const labelled = (object: KubernetesObject, labels: Record<string, string>): KubernetesObject => ({
      ...object,
      metadata: { ...object.metadata, labels },
    });
    const state = new ListedState([
      labelled(role('a', [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }], select('in-a')), { 'in-b': 'yes' }),
      labelled(role('b', [], select('in-b')), { 'in-a': 'yes' }),
      labelled(role('leaf', [PODS]), { 'in-b': 'yes' }),
      binding('x', 'ClusterRole', 'a', 'jane'),
    ]);
    const authorizer = new RbacAuthorizer(state);
    assert.ok(authorizer.authorize(getPods()).allowed);
    // Rules written into an aggregated role are ignored.
    assert.ok(!authorizer.authorize(getPods(JANE, { verb: 'delete' })).allowed);
    state.put(labelled(role('leaf', [PODS]), {}));
    assert.ok(!authorizer.authorize(getPods()).allowed);
  });

  it('accepts any names', () => {
    const state = new ListedState([
      role('__proto__', [PODS]),
      binding('constructor', 'ClusterRole', '__proto__', 'toString'),
    ]);
    const authorizer = new RbacAuthorizer(state);
    assert.ok(authorizer.authorize(getPods({ username: 'toString', groups: [] })).allowed);
    for (const username of ['__proto__', 'constructor', 'valueOf', '']) {
      assert.ok(!authorizer.authorize(getPods({ username, groups: [username] })).allowed, username);
    }
  });

  it('ignores other kinds', () => {
    const odd = { apiVersion: API_VERSION, kind: 'ClusterRoleBinding', metadata: { name: 'odd' } };
    const state = new ListedState([
      { ...odd, subjects: 'all', roleRef: null },
      {
        ...odd,
        metadata: { name: 'odder' },
        subjects: [null, 5, { kind: 'User' }],
        roleRef: { kind: 'Pod', name: 'x' },
      },
      role('r', [null as unknown as object, { verbs: 'get' }]),
      binding('b', 'ClusterRole', 'r', 'jane'),
    ]);
    assert.ok(!new RbacAuthorizer(state).authorize(getPods()).allowed);
  });

  it('lists the rules of a user', () => {
    const state = new ListedState([
      ...BOOTSTRAP_RBAC,
      localRole('r', 'shop', [PODS]),
      binding('b', 'Role', 'r', 'jane', 'shop'),
    ]);
    const authorizer = new RbacAuthorizer(state);
    const user = { username: 'jane', groups: ['system:authenticated'] };
    assert.equal(authorizer.rulesFor(user, 'shop').rules.length, authorizer.rulesFor(user).rules.length + 1);
    assert.ok(authorizer.rulesFor(user, 'shop').rules.some(({ resources }) => resources.includes('pods')));
  });
});
