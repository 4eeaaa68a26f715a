import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { MutableObject } from '../kubernetes-object.ts';
import { kubernetesSchema } from '../kubernetes/component-schemas.ts';
import { groupVersionOf } from '../resource-type.ts';
import { decodeError } from './decode-error.ts';

function problem(object: Omit<MutableObject, 'metadata'>): string | undefined {
  const [apiVersion, kind] = [String(object['apiVersion']), String(object['kind'])];
  const schema = kubernetesSchema(apiVersion, kind);
  assert.ok(schema !== undefined);
  const { version } = groupVersionOf(apiVersion);
  return decodeError({ kind, version, schema: () => schema }, { metadata: { name: 'a' }, ...object });
}

describe('objects that cannot be read', () => {
  it('are those with a value of another type than its field', () => {
    const deployment = { apiVersion: 'apps/v1', kind: 'Deployment' };
    assert.equal(
      problem({ ...deployment, spec: { replicas: 'many' } }),
      'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32',
    );
    assert.equal(
      problem({ ...deployment, spec: { replicas: 2, strategy: { rollingUpdate: { maxSurge: '5%' } } } }),
      undefined,
    );
  });

  it('report the first such value', () => {
    const text = problem({ apiVersion: 'v1', kind: 'Pod', spec: { hostname: 1, nodeName: 2 } });
    assert.match(text ?? '', /PodSpec\.spec\.hostname of type string$/);
  });

  it('may have more fields than a call takes arguments', () => {
    const data = Object.fromEntries(Array.from({ length: 200_000 }, (_, index) => [`k${index}`, '']));
    assert.equal(problem({ apiVersion: 'v1', kind: 'ConfigMap', data }), undefined);
  });

  it('may have null and unknown fields', () => {
    assert.equal(problem({ apiVersion: 'v1', kind: 'Pod', spec: { hostname: null, unknown: 5 }, other: 1 }), undefined);
  });

  it('may have bytes that are no base64', () => {
    const secret = (data: string): string | undefined =>
      problem({ apiVersion: 'v1', kind: 'Secret', data: { a: data } });
    const at = (byte: number): string =>
      `Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte ${byte}`;
    assert.deepEqual(['', 'YQ==', 'YWJj', 'YWJ\njZA=='].map(secret), Array(4).fill(undefined));
    assert.deepEqual(['Y', 'YWJjZ', 'YQ==YQ==', 'Y=', 'YQ=a'].map(secret), [at(0), at(4), at(4), at(1), at(3)]);
  });

  it('may have times that are none', () => {
    const lease = (renewTime: string): string | undefined =>
      problem({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', spec: { renewTime } });
    assert.equal(lease('2026-01-02T03:04:05.123456Z'), undefined);
    assert.match(lease('2026-01-02 03:04') ?? '', /cannot parse " 03:04" as "T"$/);
  });
});
