// Authorization.
import assert from 'node:assert/strict';
import type { PortCase } from './cases.ts';
import { eventually, refused } from './expectations.ts';
import {
  ACCESS_REVIEWS,
  CLUSTER_ROLES,
  CONFIG_MAPS,
  configMap,
  ROLE_BINDINGS,
  ROLES,
  SERVICE_ACCOUNTS,
} from './resource-types.ts';
import type { KubernetesObject } from '../../src/resources/index.ts';

const RBAC = 'rbac.authorization.k8s.io/v1';

function role(
  namespace: string,
  name: string,
  verbs: readonly string[],
  resourceNames?: readonly string[],
): KubernetesObject {
  const rule = {
    apiGroups: [''],
    resources: ['configmaps'],
    verbs,
    ...(resourceNames === undefined ? {} : { resourceNames }),
  };
  return { apiVersion: RBAC, kind: 'Role', metadata: { namespace, name }, rules: [rule] };
}

function binding(namespace: string, name: string, user: string): KubernetesObject {
  return {
    apiVersion: RBAC,
    kind: 'RoleBinding',
    metadata: { namespace, name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
  };
}

export const ACCESS_CASES: readonly PortCase[] = [
  {
    name: 'a forbidden request names the missing right',
    async run({ as, namespace }) {
      const error = await refused(
        as('alice').list(CONFIG_MAPS, { namespace }),
        403,
        'Forbidden',
        `configmaps is forbidden: User "alice" cannot list resource "configmaps" in API group "" in the namespace "${namespace}"`,
      );
      assert.equal(error.details?.kind, 'configmaps');
      await refused(
        as('alice').get(CONFIG_MAPS, { namespace, name: 'x' }),
        403,
        'Forbidden',
        `configmaps "x" is forbidden: User "alice" cannot get resource "configmaps" in API group "" in the namespace "${namespace}"`,
      );
      await refused(
        as('alice').list(CLUSTER_ROLES),
        403,
        'Forbidden',
        'clusterroles.rbac.authorization.k8s.io is forbidden: User "alice" cannot list resource "clusterroles" in API group "rbac.authorization.k8s.io" at the cluster scope',
      );
    },
  },
  {
    name: 'a bound role grants rights in its namespace, until it is unbound',
    async run({ cluster, as, namespace }) {
      await cluster.create(ROLES, role(namespace, 'reader', ['get', 'list']));
      await cluster.create(ROLE_BINDINGS, binding(namespace, 'reader', 'bob'));
      await eventually(() => as('bob').list(CONFIG_MAPS, { namespace }));
      await refused(as('bob').create(CONFIG_MAPS, configMap(namespace, 'a')), 403, 'Forbidden');
      await refused(as('bob').list(CONFIG_MAPS, { namespace: 'default' }), 403, 'Forbidden');
      await cluster.delete(ROLE_BINDINGS, { namespace, name: 'reader' });
      await eventually(() => refused(as('bob').list(CONFIG_MAPS, { namespace }), 403, 'Forbidden'));
    },
  },
  {
    name: 'a role can be limited to named objects',
    async run({ cluster, as, namespace }) {
      await cluster.create(CONFIG_MAPS, configMap(namespace, 'mine'));
      await cluster.create(ROLES, role(namespace, 'one', ['get'], ['mine']));
      await cluster.create(ROLE_BINDINGS, binding(namespace, 'one', 'bob'));
      await eventually(() => as('bob').get(CONFIG_MAPS, { namespace, name: 'mine' }));
      await refused(as('bob').get(CONFIG_MAPS, { namespace, name: 'other' }), 403, 'Forbidden');
    },
  },
  {
    name: 'users can query their rights',
    async run({ cluster, as, namespace }) {
      await cluster.create(ROLES, role(namespace, 'asker', ['create']));
      await cluster.create(ROLE_BINDINGS, binding(namespace, 'asker', 'alice'));
      const may = async (verb: string): Promise<unknown> => {
        const { status } = await as('alice').create(ACCESS_REVIEWS, {
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SelfSubjectAccessReview',
          metadata: {},
          spec: { resourceAttributes: { namespace, verb, resource: 'configmaps' } },
        });
        return status;
      };
      await eventually(async () =>
        assert.deepEqual(await may('create'), {
          allowed: true,
          reason: `RBAC: allowed by RoleBinding "asker/${namespace}" of Role "asker" to User "alice"`,
        }),
      );
      assert.deepEqual(await may('delete'), { allowed: false });
    },
  },
  {
    name: 'users cannot grant rights that they do not have',
    async run({ cluster, as, namespace }) {
      await cluster.create(ROLES, {
        apiVersion: RBAC,
        kind: 'Role',
        metadata: { namespace, name: 'roles' },
        rules: [{ apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles'], verbs: ['create'] }],
      });
      await cluster.create(ROLE_BINDINGS, binding(namespace, 'roles', 'bob'));
      await eventually(() =>
        refused(
          as('bob').create(ROLES, role(namespace, 'more', ['delete'])),
          403,
          'Forbidden',
          /roles\.rbac\.authorization\.k8s\.io "more" is forbidden: user "bob" \(groups=\[(?:"" )?"system:authenticated"\]\) is attempting to grant RBAC permissions not currently held:\n{APIGroups:\[""\], Resources:\["configmaps"\], Verbs:\["delete"\]}/,
        ),
      );
    },
  },
  {
    name: 'service accounts get tokens',
    async run({ cluster, namespace }) {
      await cluster.create(SERVICE_ACCOUNTS, {
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { namespace, name: 'robot' },
      });
      const answer = await cluster.create<
        KubernetesObject & { status: { token: string; expirationTimestamp: string } }
      >(
        SERVICE_ACCOUNTS as never,
        {
          apiVersion: 'authentication.k8s.io/v1',
          kind: 'TokenRequest',
          metadata: { namespace, name: 'robot' },
          spec: { audiences: [], expirationSeconds: 600 },
        },
        { subresource: 'token' },
      );
      const [, payload = ''] = answer.status.token.split('.');
      const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { sub: string };
      assert.equal(claims.sub, `system:serviceaccount:${namespace}:robot`);
      assert.match(answer.status.expirationTimestamp, /^\d{4}-/);
      const missing = cluster.create(
        SERVICE_ACCOUNTS,
        {
          apiVersion: 'authentication.k8s.io/v1',
          kind: 'TokenRequest',
          metadata: { namespace, name: 'none' },
          spec: { audiences: [] },
        },
        { subresource: 'token' },
      );
      await refused(missing, 404, 'NotFound', 'serviceaccounts "none" not found');
    },
  },
];
