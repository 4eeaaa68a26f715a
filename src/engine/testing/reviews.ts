import type { JsonObject, JsonValue } from '../values/json-text.ts';

/** An AdmissionReview for the creation of a pod, as the API server sends it, with some fields replaced. */
export function podReview(request: JsonObject = {}): JsonObject {
  return {
    kind: 'AdmissionReview',
    apiVersion: 'admission.k8s.io/v1',
    request: {
      uid: '1299d386-525b-4032-98ae-1949f69f9cfc',
      kind: { group: '', version: 'v1', kind: 'Pod' },
      resource: { group: '', version: 'v1', resource: 'pods' },
      requestKind: { group: '', version: 'v1', kind: 'Pod' },
      requestResource: { group: '', version: 'v1', resource: 'pods' },
      name: 'nginx',
      namespace: 'default',
      operation: 'CREATE',
      userInfo: { username: 'kubernetes-admin', groups: ['system:masters'] },
      object: { kind: 'Pod', apiVersion: 'v1', metadata: { name: 'nginx' }, spec: { containers: [{ name: 'a' }] } },
      oldObject: null,
      dryRun: false,
      options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1' },
      ...request,
    },
  };
}

/** An AdmissionReview for the creation of a Deployment with this pod template, with some fields replaced. */
export function deploymentReview(template: JsonValue, request: JsonObject = {}): JsonObject {
  const kind = { group: 'apps', version: 'v1', kind: 'Deployment' };
  const resource = { group: 'apps', version: 'v1', resource: 'deployments' };
  const of = { kind, resource, requestKind: kind, requestResource: resource };
  return podReview({ ...of, name: 'web', object: deployment(template), ...request });
}

/** The object of {@link deploymentReview}. */
export function deployment(template: JsonValue): JsonObject {
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' }, spec: { replicas: 1, template } };
}

export function bytes(value: unknown): Uint8Array {
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
}
