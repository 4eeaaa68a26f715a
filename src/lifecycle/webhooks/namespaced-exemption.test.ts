// Match conditions of webhooks of namespaced policies, evaluated as API servers do.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseCelJson } from '../../cel/index.ts';
import { CLUSTER_COLLECTORS, policyMatch } from '../../resources/index.ts';
import type { AdmissionPolicySpec, MatchRule, PolicyMatch } from '../../resources/index.ts';
import { MatchConditionEvaluator } from '../../resources/match-conditions/index.ts';
import { webhookConfigurations } from './webhook-configurations.ts';
import type { Webhook } from './webhook-object.ts';

const RULE: MatchRule = {
  operations: ['CREATE'],
  apiGroups: [''],
  apiVersions: ['v1'],
  resources: ['configmaps'],
  scope: '*',
};
const WILD: MatchRule = { ...RULE, operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'] };
const [GARBAGE_COLLECTOR = '', NAMESPACE_CONTROLLER = ''] = CLUSTER_COLLECTORS;

/** `namespace`: undefined for a policy of the cluster. */
function webhookOf(
  rules: readonly MatchRule[],
  { namespace }: { readonly namespace?: string } = { namespace: 'shop' },
): Webhook {
  const kind = namespace === undefined ? 'ClusterAdmissionPolicy' : 'AdmissionPolicy';
  const metadata = { name: 'p', ...(namespace === undefined ? {} : { namespace }) };
  const spec = { mutating: false, rules } as unknown as AdmissionPolicySpec;
  const match: PolicyMatch = policyMatch(
    { kind, metadata, spec },
    { productNamespace: 'portcullis', ownWebhook: false },
  );
  const { configurations } = webhookConfigurations([match], {
    policyServer: 'default',
    target: { url: 'https://localhost:8443', ca: 'PEM' },
    exemptNamespaces: [],
    identities: [],
    productNamespace: 'portcullis',
  });
  const [webhook] = configurations.flatMap(({ webhooks = [] }) => webhooks as readonly Webhook[]);
  assert.ok(webhook);
  return webhook;
}

interface Request {
  readonly resource?: readonly [group: string, resource: string];
  readonly subResource?: string;
  readonly operation?: string;
  readonly username?: string;
  readonly object?: object | null;
  readonly oldObject?: object | null;
}

/** Whether an API server calls a webhook whose rules match the request. */
function isSent({ matchConditions = [] }: Webhook, request: Request): boolean {
  const { resource: [group, resource] = ['', 'configmaps'], subResource, operation = 'CREATE' } = request;
  const { username = 'jane', object = { metadata: {} }, oldObject = null } = request;
  const facts = {
    operation,
    resource: { group, version: 'v1', resource },
    ...(subResource === undefined ? {} : { subResource }),
    userInfo: { username },
  };
  const result = new MatchConditionEvaluator().check(matchConditions, false, {
    object: parseCelJson(JSON.stringify(object)),
    oldObject: parseCelJson(JSON.stringify(oldObject)),
    request: parseCelJson(JSON.stringify(facts)),
  });
  assert.ok('matches' in result, JSON.stringify(result));
  return result.matches;
}

describe('the webhook of a namespaced policy', () => {
  it('has no match condition where its rules match no exempt request', () => {
    const pods = { ...RULE, resources: ['pods', 'pods/*', 'serviceaccounts'] };
    for (const rule of [
      RULE,
      pods,
      { ...RULE, apiGroups: ['apps'], resources: ['*'], operations: ['CREATE', 'CONNECT'] },
    ]) {
      assert.equal(webhookOf([rule]).matchConditions, undefined, JSON.stringify(rule));
    }
  });

  it('gets no privileged kinds, neither by a wildcard nor by name', () => {
    for (const [group, resource, subResource] of [
      ['rbac.authorization.k8s.io', 'rolebindings'],
      ['authentication.k8s.io', 'tokenreviews'],
      ['authorization.k8s.io', 'localsubjectaccessreviews'],
      ['certificates.k8s.io', 'certificatesigningrequests'],
      ['admissionregistration.k8s.io', 'validatingwebhookconfigurations'],
      ['policies.kubewarden.io', 'admissionpolicies'],
      ['portcullis.dev', 'policyrevisions'],
      ['policy.open-cluster-management.io', 'policies'],
      ['', 'serviceaccounts', 'token'],
    ] as const) {
      const request = { resource: [group, resource], ...(subResource === undefined ? {} : { subResource }) } as const;
      const named = {
        ...RULE,
        apiGroups: [group],
        resources: [subResource === undefined ? resource : `${resource}/${subResource}`],
      };
      const wide = { ...RULE, apiGroups: [group], resources: ['*/*'] };
      for (const rule of [WILD, named, wide]) {
        const webhook = webhookOf([RULE, rule]);
        assert.equal(isSent(webhook, request), false, JSON.stringify([rule, request]));
        assert.equal(isSent(webhook, {}), true);
      }
    }
  });

  it('gets no tokens by a wildcard for resources or subresources', () => {
    for (const resources of [['serviceaccounts/*'], ['*/token'], ['*/*']]) {
      const webhook = webhookOf([{ ...RULE, resources }]);
      assert.equal(isSent(webhook, { resource: ['', 'serviceaccounts'], subResource: 'token' }), false);
      assert.equal(isSent(webhook, { resource: ['', 'serviceaccounts'] }), true);
      assert.equal(isSent(webhook, { resource: ['example.com', 'serviceaccounts'], subResource: 'token' }), true);
    }
  });

  it('gets Leases only if its rules name them', () => {
    const leases = { resource: ['coordination.k8s.io', 'leases'] } as const;
    assert.equal(isSent(webhookOf([WILD]), leases), false);
    assert.equal(
      isSent(webhookOf([{ ...RULE, apiGroups: ['coordination.k8s.io'], resources: ['leases'] }]), leases),
      true,
    );
  });

  it('gets no deletions and no removals of finalizers by the garbage collector and the namespace controller', () => {
    const finalizers = (...names: readonly string[]): object => ({ metadata: { finalizers: names } });
    const removal = { operation: 'UPDATE', oldObject: finalizers('a', 'b'), object: finalizers('b') };
    const deletion = { operation: 'DELETE', oldObject: finalizers('a'), object: null };
    for (const operations of [['*'], ['UPDATE', 'DELETE', 'CREATE']]) {
      const webhook = webhookOf([{ ...RULE, operations }]);
      for (const username of [GARBAGE_COLLECTOR, NAMESPACE_CONTROLLER]) {
        assert.equal(isSent(webhook, { ...deletion, username }), false);
        assert.equal(isSent(webhook, { ...removal, username }), false);
        assert.equal(isSent(webhook, { ...removal, object: { metadata: {} }, username }), false);
        for (const object of [finalizers('a', 'b'), finalizers('c'), finalizers('a', 'b', 'c')]) {
          assert.equal(isSent(webhook, { ...removal, object, username }), true);
        }
        assert.equal(isSent(webhook, { operation: 'CREATE', username }), true);
      }
      for (const username of [
        'jane',
        'system:serviceaccount:kube-system:replicaset-controller',
        `${GARBAGE_COLLECTOR}2`,
      ]) {
        assert.equal(isSent(webhook, { ...deletion, username }), true);
        assert.equal(isSent(webhook, { ...removal, username }), true);
      }
    }
    const deletions = webhookOf([{ ...RULE, operations: ['DELETE'] }]);
    assert.equal(isSent(deletions, { ...deletion, username: NAMESPACE_CONTROLLER }), false);
  });
});

describe('the webhook of a policy of the cluster', () => {
  it('gets privileged kinds, and what the garbage collector does', () => {
    const webhook = webhookOf([WILD], {});
    assert.equal(isSent(webhook, { resource: ['rbac.authorization.k8s.io', 'rolebindings'] }), true);
    assert.equal(isSent(webhook, { operation: 'DELETE', object: null, username: GARBAGE_COLLECTOR }), true);
  });
});
