import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AdmissionPolicyObject, PolicyRevision } from '../../resources/index.ts';
import { grantCondition } from './context-aware-grant.ts';
import { contextAwareRules, declaredKinds, type KindAccess } from './context-aware-rules.ts';

const kindsOf = (...kinds: readonly string[]): object => ({
  contextAwareResources: kinds.map((kind) => ({ apiVersion: 'v1', kind })),
});
const policy = (spec: object, kind = 'ClusterAdmissionPolicy', namespace?: string): AdmissionPolicyObject =>
  ({
    apiVersion: 'policies.kubewarden.io/v1',
    kind,
    metadata: { name: 'p', ...(namespace === undefined ? {} : { namespace }) },
    spec,
  }) as AdmissionPolicyObject;
const revision = (state: string | undefined, kind: string, namespace?: string): PolicyRevision =>
  ({
    metadata: { name: 'r' },
    spec: {
      policy: { kind: 'ClusterAdmissionPolicy', name: 'p', ...(namespace === undefined ? {} : { namespace }) },
      policyId: 'kw.cap.p',
      snapshot: kindsOf(kind),
    },
    status: { state },
  }) as PolicyRevision;

describe('kinds that policies read', () => {
  const declared = (...args: Parameters<typeof declaredKinds>): readonly string[] =>
    declaredKinds(...args).map(({ kind, policies }) => `${kind}: ${policies.join()}`);

  it('come from policies and members of groups, without duplicates', () => {
    const group = { policies: { a: { module: 'm', ...kindsOf('Pod') }, b: { module: 'm' } } };
    const policies = [policy(kindsOf('Pod', 'Node')), policy(group, 'ClusterAdmissionPolicyGroup'), policy({})];
    assert.deepEqual(declared(policies, []), ['Node: kw.cap.p', 'Pod: kw.cap.p,kw.capg.p']);
  });

  it('exclude those of namespaced policies, which may read none', () => {
    assert.deepEqual(
      declared([policy(kindsOf('Secret'), 'AdmissionPolicy', 'shop')], [revision('Serving', 'Secret', 'shop')]),
      [],
    );
  });

  it('include those of revisions that replicas may evaluate', () => {
    const alive = ['Candidate', 'Validated', 'Staged', 'Serving', undefined].map((state) =>
      revision(state, `Kind${state}`),
    );
    const dead = ['Retired', 'Failed', 'Superseded'].map((state) => revision(state, state));
    const kinds = declaredKinds([], [...alive, ...dead]).map(({ kind }) => kind);
    assert.deepEqual(kinds, ['KindCandidate', 'KindServing', 'KindStaged', 'KindValidated', 'Kindundefined']);
  });
});

const access = (group: string, resource: string, verbs: readonly string[] = ['get']): KindAccess => ({
  declared: { apiVersion: `${group}/v1`, kind: resource, policies: ['kw.cap.p'] },
  rule: { apiGroups: [group], resources: [resource], verbs },
});

describe('rules for kinds', () => {
  it('do not depend on the order of kinds', () => {
    const kinds = [access('', 'pods'), access('apps', 'deployments'), access('', 'nodes'), access('', 'pods')];
    const rules = contextAwareRules(kinds);
    assert.deepEqual(rules, [
      { apiGroups: [''], resources: ['nodes', 'pods'], verbs: ['get'] },
      { apiGroups: ['apps'], resources: ['deployments'], verbs: ['get'] },
    ]);
    assert.deepEqual(contextAwareRules(kinds.toReversed()), rules);
  });
});

describe('the condition about rights', () => {
  it('names some kinds, and counts the others', () => {
    const refused = Array.from({ length: 12 }, (_, index) => access('g', `r${index}`));
    const { status, reason, message } = grantCondition({ granted: [], refused, unknown: [] });
    assert.equal(`${status} ${reason}`, 'False NotGranted');
    assert.match(message, /get r0\.g \(for kw\.cap\.p\); .*r9\.g.*; 2 more\. Add/);
  });
});
