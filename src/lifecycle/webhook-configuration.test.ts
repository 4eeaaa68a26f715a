import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AdmissionPolicyObject } from '../resources/index.ts';
import {
  corrected,
  policyOf,
  type WebhookConfiguration,
  webhookConfiguration,
  widened,
} from './webhook-configuration.ts';

const TARGET = { url: 'https://localhost:8443', ca: 'PEM' };
const RULE = { apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] };

const ELSEWHERE = { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['portcullis'] };

function policy(kind: string, metadata: object, spec: object = {}): AdmissionPolicyObject {
  const always = { module: 'x', rules: [RULE], mutating: false, timeoutSeconds: 10 };
  return {
    apiVersion: 'policies.kubewarden.io/v1',
    kind,
    metadata,
    spec: { ...always, ...spec },
  } as unknown as AdmissionPolicyObject;
}

function webhookOf({ webhooks = [] }: WebhookConfiguration): Readonly<Record<string, unknown>> {
  assert.equal(webhooks.length, 1);
  return webhooks[0] as Readonly<Record<string, unknown>>;
}

describe('webhookConfiguration', () => {
  it('asks the policy at its own path, and leaves nothing to defaults', () => {
    const made = webhookConfiguration(policy('ClusterAdmissionPolicy', { name: 'p' }), TARGET, 'portcullis');
    assert.equal(made.kind, 'ValidatingWebhookConfiguration');
    assert.equal(made.metadata.name, 'kw.cap.p');
    assert.deepEqual(webhookOf(made), {
      name: 'kw.cap.p.kubewarden.admission',
      admissionReviewVersions: ['v1'],
      clientConfig: { url: 'https://localhost:8443/validate/kw.cap.p', caBundle: 'UEVN' },
      rules: [{ ...RULE, scope: '*' }],
      failurePolicy: 'Fail',
      matchPolicy: 'Equivalent',
      objectSelector: {},
      namespaceSelector: { matchExpressions: [ELSEWHERE] },
      sideEffects: 'None',
      timeoutSeconds: 10,
    });
  });

  it('is for its own namespace only, whatever a namespaced policy says', () => {
    for (const kind of ['AdmissionPolicy', 'AdmissionPolicyGroup']) {
      const spec = { namespaceSelector: {}, ...(kind === 'AdmissionPolicy' ? {} : { policies: {} }) };
      const made = webhookConfiguration(policy(kind, { namespace: 'shop', name: 'p' }, spec), TARGET, 'portcullis');
      const own = { matchLabels: { 'kubernetes.io/metadata.name': 'shop' } };
      assert.deepEqual(webhookOf(made)['namespaceSelector'], own);
      assert.deepEqual(policyOf(made), { namespace: 'shop', name: 'p' });
    }
  });

  it('has what a policy says', () => {
    const spec = {
      failurePolicy: 'Ignore',
      matchPolicy: 'Exact',
      matchConditions: [{ name: 'a', expression: 'true' }],
      objectSelector: { matchLabels: { a: 'b' } },
      namespaceSelector: { matchLabels: { c: 'd' } },
      sideEffects: 'NoneOnDryRun',
      timeoutSeconds: 7,
      rules: [{ ...RULE, scope: 'Namespaced' }],
      allowInsideAdmissionControllerNamespace: true,
    };
    const webhook = webhookOf(
      webhookConfiguration(policy('ClusterAdmissionPolicy', { name: 'p' }, spec), TARGET, 'portcullis'),
    );
    for (const [field, value] of Object.entries(spec)) {
      if (field !== 'allowInsideAdmissionControllerNamespace') {
        assert.deepEqual(webhook[field], value, field);
      }
    }
  });

  it('is not for the namespace of the product, unless the policy says so', () => {
    const selectorOf = (kind: string, spec: object): unknown =>
      webhookOf(webhookConfiguration(policy(kind, { name: 'p' }, spec), TARGET, 'portcullis'))['namespaceSelector'];
    const own = { matchLabels: { a: 'b' }, matchExpressions: [{ key: 'c', operator: 'Exists' }] };
    assert.deepEqual(selectorOf('ClusterAdmissionPolicy', { namespaceSelector: own }), {
      ...own,
      matchExpressions: [...own.matchExpressions, ELSEWHERE],
    });
    assert.deepEqual(selectorOf('ClusterAdmissionPolicyGroup', { policies: {} }), { matchExpressions: [ELSEWHERE] });
    assert.deepEqual(selectorOf('ClusterAdmissionPolicy', { allowInsideAdmissionControllerNamespace: true }), {});
  });

  it('is not for what it takes to mend the policy, where its rules are for our own kinds', () => {
    const conditionsOf = (groups: readonly string[], spec: object = {}): readonly { expression: string }[] => {
      const rules = [{ ...RULE, apiGroups: groups }];
      const made = webhookConfiguration(
        policy('ClusterAdmissionPolicy', { name: 'p' }, { rules, ...spec }),
        TARGET,
        'n',
      );
      return (webhookOf(made)['matchConditions'] ?? []) as readonly { expression: string }[];
    };
    assert.deepEqual(conditionsOf(['', 'apps']), []);
    const [all, ...none] = conditionsOf(['*']);
    assert.deepEqual(none, []);
    assert.equal(
      all?.expression,
      '!(request.resource.group == "portcullis.dev" || request.resource.group == "policies.kubewarden.io" || request.resource.group == "authentication.k8s.io")',
    );
    const [named] = conditionsOf(['policies.kubewarden.io']);
    assert.equal(
      named?.expression,
      '!(request.resource.group == "portcullis.dev" || (request.resource.group == "policies.kubewarden.io" && has(request.subResource) && request.subResource == "status"))',
    );
    const own = Array.from({ length: 64 }, (_, index) => ({ name: `c${index}`, expression: 'true' }));
    assert.equal(conditionsOf(['*'], { matchConditions: own }).length, 64);
    assert.equal(conditionsOf(['*'], { matchConditions: own.slice(1) }).length, 64);
  });

  it('is mutating for a policy that mutates, never for a group', () => {
    const kindOf = (kind: string, spec: object): string =>
      webhookConfiguration(policy(kind, { name: 'p' }, spec), TARGET, 'portcullis').kind;
    assert.equal(kindOf('ClusterAdmissionPolicy', { mutating: true }), 'MutatingWebhookConfiguration');
    assert.equal(kindOf('ClusterAdmissionPolicyGroup', { policies: {} }), 'ValidatingWebhookConfiguration');
  });
});

describe('corrected', () => {
  const wanted = webhookConfiguration(policy('ClusterAdmissionPolicy', { name: 'p' }), TARGET, 'portcullis');

  it('is nothing for what is right, with what others added to it', () => {
    const { labels, annotations } = wanted.metadata;
    const metadata = { ...wanted.metadata, resourceVersion: '7', labels: { ...labels, a: 'b' } };
    assert.equal(
      corrected({ ...wanted, metadata: { ...metadata, annotations: { ...annotations, c: 'd' } } }, wanted),
      undefined,
    );
  });

  it('puts right what differs, and keeps the rest', () => {
    const actual = {
      ...wanted,
      metadata: { name: 'kw.cap.p', resourceVersion: '7', labels: { 'app.kubernetes.io/managed-by': 'me', a: 'b' } },
      webhooks: [{ ...webhookOf(wanted), objectSelector: { matchLabels: { a: 'b' } } }],
    };
    const { webhooks, metadata } = corrected(actual, wanted) ?? actual;
    assert.deepEqual(webhooks, wanted.webhooks);
    assert.deepEqual(metadata, {
      ...wanted.metadata,
      resourceVersion: '7',
      labels: { 'app.kubernetes.io/managed-by': 'portcullis', a: 'b' },
    });
    assert.deepEqual(corrected({ ...wanted, webhooks: [] }, wanted)?.webhooks, wanted.webhooks);
  });
});

describe('widened', () => {
  const made = (spec: object): WebhookConfiguration =>
    webhookConfiguration(policy('ClusterAdmissionPolicy', { name: 'p' }, spec), TARGET, 'portcullis');

  it('is the last one where they are the same', () => {
    assert.deepEqual(widened(made({}), [made({})]), made({}));
  });

  it('keeps what all of them demand: more is asked about than any of them says, not everything', () => {
    const [a, b] = [{ a: 'b' }, { c: 'd' }];
    const condition = (name: string): object => ({ name, expression: 'true' });
    const old = made({ objectSelector: { matchLabels: { ...a, ...b } }, matchConditions: ['x', 'y'].map(condition) });
    const next = made({ objectSelector: { matchLabels: b }, matchConditions: ['y', 'z'].map(condition) });
    const webhook = webhookOf(widened(next, [old]));
    assert.deepEqual(webhook['objectSelector'], { matchLabels: b });
    assert.deepEqual(webhook['matchConditions'], [condition('y')]);
  });

  it('asks about what any of them is for, and as strictly as the strictest', () => {
    const other = { ...RULE, resources: ['services'] };
    const selector = { matchLabels: { a: 'b' } };
    const old = made({
      rules: [RULE],
      objectSelector: selector,
      matchConditions: [{ name: 'a', expression: 'true' }],
      timeoutSeconds: 20,
      failurePolicy: 'Fail',
    });
    const next = made({
      rules: [other],
      namespaceSelector: selector,
      matchPolicy: 'Exact',
      failurePolicy: 'Ignore',
    });
    const webhook = webhookOf(widened(next, [old]));
    assert.deepEqual(
      webhook['rules'],
      [RULE, other].map((rule) => ({ ...rule, scope: '*' })),
    );
    assert.deepEqual(webhook['objectSelector'], {});
    assert.deepEqual(webhook['namespaceSelector'], { matchExpressions: [ELSEWHERE] });
    assert.ok(!('matchConditions' in webhook));
    assert.deepEqual(
      [webhook['timeoutSeconds'], webhook['matchPolicy'], webhook['failurePolicy']],
      [20, 'Equivalent', 'Fail'],
    );
  });
});
