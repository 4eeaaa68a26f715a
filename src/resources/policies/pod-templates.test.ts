import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { knownKind } from '../kubernetes/builtin-kinds.ts';
import { policyMatch, type PolicyMatch } from './policy-match.ts';
import type { AdmissionPolicySpec } from './policy-names.ts';
import { isPodTemplatesBucket, podTemplatesBucket, webhookMatches, workloadOf, WORKLOADS } from './pod-templates.ts';

const RULE = { apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] };

function match(rest: object, namespace?: string, ownWebhook = false): PolicyMatch {
  const kind = namespace === undefined ? 'ClusterAdmissionPolicy' : 'AdmissionPolicy';
  const metadata = { name: 'p', ...(namespace === undefined ? {} : { namespace }) };
  const spec = { mutating: false, rules: [RULE], podTemplates: 'Warn', ...rest } as unknown as AdmissionPolicySpec;
  return policyMatch({ kind, metadata, spec }, { productNamespace: 'portcullis', ownWebhook });
}

describe('workloads', () => {
  it('are namespaced kinds of Kubernetes', () => {
    for (const { group, kind, resource } of WORKLOADS) {
      const type = knownKind(group === '' ? 'v1' : `${group}/v1`, kind);
      assert.deepEqual([type.resource, type.namespaced], [resource, true]);
      assert.equal(workloadOf({ group, resource })?.kind, kind);
    }
    assert.equal(workloadOf({ group: 'example.com', resource: 'deployments' }), undefined);
    assert.equal(workloadOf({ group: '', resource: 'constructor' }), undefined);
  });
});

describe('webhookMatches', () => {
  it('adds the workloads for a policy that checks pod templates, and the pods decide by selectors and conditions', () => {
    const own = match({
      failurePolicy: 'Fail',
      timeoutSeconds: 7,
      namespaceSelector: { matchLabels: { a: 'b' } },
      objectSelector: { matchLabels: { c: 'd' } },
      matchConditions: [{ name: 'n', expression: 'true' }],
    });
    const [first, ofWorkloads, ...others] = webhookMatches(own);
    assert.deepEqual([first, others], [own, []]);
    assert.deepEqual(ofWorkloads, {
      bucket: 'validating.ignore.equivalent.cluster.templates',
      isMutating: false,
      failurePolicy: 'Ignore',
      matchPolicy: 'Equivalent',
      rules: [
        ['apps', ['deployments', 'statefulsets', 'daemonsets', 'replicasets']],
        ['', ['replicationcontrollers', 'podtemplates']],
        ['batch', ['jobs', 'cronjobs']],
      ].map(([group, resources]) => ({
        operations: ['CREATE', 'UPDATE'],
        apiGroups: [group],
        apiVersions: ['v1'],
        resources,
        scope: 'Namespaced',
      })),
      namespaceSelector: own.namespaceSelector,
      objectSelector: {},
      matchConditions: [],
      timeoutSeconds: 7,
    });
    // A match of workloads stands for itself.
    assert.equal(webhookMatches(ofWorkloads ?? assert.fail()).length, 1);
  });

  for (const [what, spec, isChecked] of [
    ['every resource', { rules: [{ ...RULE, apiGroups: ['*'], resources: ['*'] }] }, true],
    ['pods among others', { rules: [{ ...RULE, resources: ['secrets', 'pods/*'], operations: ['*'] }] }, true],
    ['updates of pods', { rules: [{ ...RULE, operations: ['UPDATE'] }] }, false],
    ['subresources of pods', { rules: [{ ...RULE, resources: ['pods/ephemeralcontainers'] }] }, false],
    ['cluster-scoped objects', { rules: [{ ...RULE, resources: ['*'], scope: 'Cluster' }] }, false],
    ['other kinds', { rules: [{ ...RULE, apiGroups: ['apps'], resources: ['deployments'] }] }, false],
    ['pods, without opting in', { podTemplates: undefined }, false],
    ['pods, with Ignore', { podTemplates: 'Ignore' }, false],
    ['pods, with a value of a newer version', { podTemplates: 'Audit' }, false],
  ] as const) {
    it(`${isChecked ? 'adds' : 'does not add'} workloads for a policy of ${what}`, () => {
      assert.equal(webhookMatches(match(spec)).length, isChecked ? 2 : 1);
    });
  }

  it('has four buckets of pod templates, for policies with a webhook of their own as well', () => {
    const buckets = [undefined, 'shop'].flatMap((namespace) =>
      [false, true].flatMap((mutating) =>
        [false, true].map((ownWebhook) => webhookMatches(match({ mutating }, namespace, ownWebhook))[1]?.bucket ?? ''),
      ),
    );
    assert.equal(new Set(buckets).size, 4);
    assert.ok(buckets.every(isPodTemplatesBucket));
    assert.equal(
      podTemplatesBucket({ isMutating: true, namespace: 'a' }),
      'mutating.ignore.equivalent.namespaced.templates',
    );
  });

  it('never shares a bucket of pod templates with requests', () => {
    for (const name of ['templates', 'x.templates']) {
      const spec = { failurePolicy: 'Ignore', rules: [{ ...RULE, apiVersions: [name] }] };
      const policy = policyMatch(
        { kind: 'ClusterAdmissionPolicy', metadata: { name }, spec: { mutating: false, ...spec } as never },
        { productNamespace: 'portcullis', ownWebhook: false },
      );
      assert.equal(isPodTemplatesBucket(policy.bucket), false);
    }
    const own = policyMatch(
      {
        kind: 'ClusterAdmissionPolicy',
        metadata: { name: 'a.templates' },
        spec: { mutating: false, rules: [RULE] } as never,
      },
      { productNamespace: 'portcullis', ownWebhook: true },
    );
    assert.equal(isPodTemplatesBucket(own.bucket), false);
  });
});
