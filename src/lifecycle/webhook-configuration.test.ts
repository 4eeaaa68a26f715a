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
    const made = webhookConfiguration(policy('ClusterAdmissionPolicy', { name: 'p' }), TARGET);
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
      namespaceSelector: {},
      sideEffects: 'None',
      timeoutSeconds: 10,
    });
  });

  it('is for its own namespace only, whatever a namespaced policy says', () => {
    for (const kind of ['AdmissionPolicy', 'AdmissionPolicyGroup']) {
      const spec = { namespaceSelector: {}, ...(kind === 'AdmissionPolicy' ? {} : { policies: {} }) };
      const made = webhookConfiguration(policy(kind, { namespace: 'shop', name: 'p' }, spec), TARGET);
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
    };
    const webhook = webhookOf(webhookConfiguration(policy('ClusterAdmissionPolicy', { name: 'p' }, spec), TARGET));
    for (const [field, value] of Object.entries(spec)) {
      assert.deepEqual(webhook[field], value, field);
    }
  });

  it('is mutating for a policy that mutates, never for a group', () => {
    const kindOf = (kind: string, spec: object): string =>
      webhookConfiguration(policy(kind, { name: 'p' }, spec), TARGET).kind;
    assert.equal(kindOf('ClusterAdmissionPolicy', { mutating: true }), 'MutatingWebhookConfiguration');
    assert.equal(kindOf('ClusterAdmissionPolicyGroup', { policies: {} }), 'ValidatingWebhookConfiguration');
  });
});

describe('corrected', () => {
  const wanted = webhookConfiguration(policy('ClusterAdmissionPolicy', { name: 'p' }), TARGET);

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
    webhookConfiguration(policy('ClusterAdmissionPolicy', { name: 'p' }, spec), TARGET);

  it('is the last one where they are the same', () => {
    assert.deepEqual(widened(made({}), [made({})]), made({}));
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
    assert.deepEqual([webhook['objectSelector'], webhook['namespaceSelector']], [{}, {}]);
    assert.ok(!('matchConditions' in webhook));
    assert.deepEqual(
      [webhook['timeoutSeconds'], webhook['matchPolicy'], webhook['failurePolicy']],
      [20, 'Equivalent', 'Fail'],
    );
  });
});
