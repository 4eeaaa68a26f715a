import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AccessRule, JsonObject, KubernetesObject } from '../../resources/index.ts';
import { installObjects } from '../install-objects.ts';
import { installValues } from '../read-values.ts';

const objectsWith = (governance: JsonObject): readonly KubernetesObject[] =>
  installObjects({ namespace: 'product', values: installValues({ governance }, '1.0.0', 'values.yaml') });

interface Binding extends KubernetesObject {
  readonly roleRef: { readonly kind: string; readonly name: string };
  readonly subjects: readonly { readonly name: string; readonly namespace: string }[];
}

/** `kind/role` of each binding of a service account. */
function rolesOf(account: string, objects: readonly KubernetesObject[]): readonly string[] {
  return objects
    .filter((object): object is Binding => object.kind.endsWith('Binding') && 'roleRef' in object)
    .filter(({ subjects }) => subjects.some(({ name, namespace }) => name === account && namespace === 'product'))
    .map(({ kind, roleRef }) => `${kind}/${roleRef.name}`)
    .toSorted();
}

function rulesOf(kind: string, name: string, objects: readonly KubernetesObject[]): readonly AccessRule[] {
  const role = objects.find((one) => one.kind === kind && one.metadata.name === name);
  return (role?.['rules'] ?? []) as readonly AccessRule[];
}

const READ = ['get', 'list', 'watch'];

describe('the governance account', () => {
  it('only reads admission policies until an administrator grants more', () => {
    const objects = objectsWith({});
    assert.deepEqual(rolesOf('portcullis-governance', objects), ['ClusterRoleBinding/portcullis-governance']);
    const rules = rulesOf('ClusterRole', 'portcullis-governance', objects);
    assert.deepEqual(
      rules
        .filter(({ verbs }) => verbs.some((verb) => !READ.includes(verb)))
        .map(({ resources, verbs }) => [resources, verbs]),
      [[['policies/finalizers'], ['update']]],
    );
    assert.deepEqual(
      new Set(rules.flatMap(({ apiGroups }) => apiGroups)),
      new Set(['policies.kubewarden.io', 'policy.open-cluster-management.io']),
    );
  });

  it('has exactly the ClusterRoles of the value besides', () => {
    assert.deepEqual(rolesOf('portcullis-governance', objectsWith({ roles: ['view', 'system:node-reader'] })), [
      'ClusterRoleBinding/portcullis-governance',
      'ClusterRoleBinding/system:node-reader',
      'ClusterRoleBinding/view',
    ]);
  });

  it('is the only user that the controller may impersonate', () => {
    const objects = objectsWith({});
    const impersonations = objects
      .flatMap((object) => ((object['rules'] ?? []) as readonly AccessRule[]).map((rule) => ({ object, rule })))
      .filter(({ rule }) => rule.verbs.some((verb) => verb === 'impersonate' || verb === '*'));
    assert.deepEqual(
      impersonations.map(({ object, rule: { resources, resourceNames, verbs } }) => [
        object.kind,
        object.metadata.namespace,
        resources,
        resourceNames,
        verbs,
      ]),
      [['Role', 'product', ['serviceaccounts'], ['portcullis-governance'], ['impersonate']]],
    );
  });

  it('does not exist where governance is off, and the controller has no rights for it', () => {
    const text = JSON.stringify(
      objectsWith({ enabled: false, roles: ['view'] }).filter(({ kind }) =>
        ['ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding', 'ServiceAccount'].includes(kind),
      ),
    );
    assert.doesNotMatch(text, /portcullis-governance|controller-governance|impersonate/);
    assert.match(JSON.stringify(objectsWith({ enabled: false })), /"--governance=false"/);
  });
});

describe('Policies', () => {
  it('can be read by viewers, and written by nobody through the roles of users', () => {
    const roles = objectsWith({}).filter(({ metadata }) =>
      Object.keys(metadata.labels ?? {}).some((name) => name.startsWith('rbac.authorization.k8s.io/aggregate-to-')),
    );
    const rules = roles
      .flatMap(({ rules: all }) => all as readonly AccessRule[])
      .filter(({ apiGroups }) => apiGroups.includes('policy.open-cluster-management.io'));
    assert.deepEqual(
      rules.map(({ resources, verbs }) => [resources.toSorted(), verbs]),
      [[['certificatepolicies', 'configurationpolicies', 'policies', 'policysets'], READ]],
    );
  });
});
