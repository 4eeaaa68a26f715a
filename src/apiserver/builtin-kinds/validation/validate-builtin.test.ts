import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubernetesObject, MutableObject } from '../../../resources/index.ts';
import { servedKind } from '../../testing/served-kind.ts';

/**
 * Mistakes in an object after defaulting. The comparison with a real API server is test/e2e/builtin-kinds.full.test.ts.
 */
function problems(object: MutableObject, old?: KubernetesObject): readonly string[] {
  const definition = servedKind(object.apiVersion, object.kind);
  definition?.applyDefaults?.(object);
  return (definition?.validate?.(object, old) ?? []).map(({ field, message }) => `${field}: ${message}`);
}

function deployment(spec: object = {}): MutableObject {
  const template = { metadata: { labels: { app: 'a' } }, spec: { containers: [{ name: 'main', image: 'a:1' }] } };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'a' },
    spec: { selector: { matchLabels: { app: 'a' } }, template, ...spec },
  };
}

describe('validation of kinds of Kubernetes', () => {
  it('accepts valid objects', () => {
    assert.deepEqual(problems(deployment()), []);
  });

  it('requires mandatory fields', () => {
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, spec: { containers: [{}] } };
    assert.deepEqual(problems(pod), [
      'spec.containers[0].name: Required value',
      'spec.containers[0].image: Required value',
    ]);
  });

  it('requires a selector that matches the template', () => {
    assert.deepEqual(problems(deployment({ selector: { matchLabels: { app: 'b' } } })), [
      'spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template `labels`',
    ]);
  });

  it('refuses a resource after *, and not before it, as API servers do', () => {
    const configuration = (resources: readonly string[]): MutableObject => ({
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: 'a' },
      webhooks: [
        {
          name: 'a.example.com',
          sideEffects: 'None',
          admissionReviewVersions: ['v1'],
          clientConfig: { url: 'https://example.com' },
          rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources }],
        },
      ],
    });
    assert.deepEqual(problems(configuration(['pods', '*', 'pods/log'])), []);
    assert.deepEqual(problems(configuration(['*', 'pods', 'pods/log'])), [
      `webhooks[0].rules[0].resources: Invalid value: ["*","pods","pods/log"]: if '*' is present, must not specify other resources without subresources`,
    ]);
  });

  it('refuses changes of immutable fields', () => {
    const old = deployment();
    problems(old);
    const changed = deployment({ selector: { matchExpressions: [{ key: 'app', operator: 'Exists' }] } });
    assert.deepEqual(problems(changed, old), [
      'spec.selector: Invalid value: {"matchExpressions":[{"key":"app","operator":"Exists"}]}: field is immutable',
    ]);
  });

  it('lets only images of a pod change', () => {
    const pod = (image: string, name = 'main'): MutableObject => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'a' },
      spec: { containers: [{ name, image, imagePullPolicy: 'Always' }] },
    });
    const old = pod('a:1');
    problems(old);
    assert.deepEqual(problems(pod('b:2'), old), []);
    assert.match(problems(pod('a:1', 'other'), old)[0] ?? '', /^spec: Forbidden: pod updates may not change fields/);
  });

  it('keeps an immutable config map as it is', () => {
    const map = (fields: object): MutableObject => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'a' },
      ...fields,
    });
    const old = map({ immutable: true, data: { a: 'b' } });
    assert.deepEqual(problems(map({ data: { a: 'c' } }), old), [
      'immutable: Forbidden: field is immutable when `immutable` is set',
      'data: Forbidden: field is immutable when `immutable` is set',
    ]);
    assert.deepEqual(problems(map({ immutable: true, data: { a: 'b' } }), old), []);
  });

  it('looks for blocks of addresses within others', () => {
    const policy = (except: string): MutableObject => ({
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: 'a' },
      spec: { podSelector: {}, ingress: [{ from: [{ ipBlock: { cidr: '10.0.0.0/8', except: [except] } }] }] },
    });
    assert.deepEqual(problems(policy('10.1.0.0/16')), []);
    assert.equal(problems(policy('11.0.0.0/16')).length, 1);
    assert.equal(problems(policy('10.0.0.0/8')).length, 1);
  });
});
