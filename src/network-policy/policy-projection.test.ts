import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { EmbeddedCluster } from '../apiserver/index.ts';
import { ANNOTATIONS, kubernetesKind, type KubernetesObject } from '../resources/index.ts';
import { annotationOf, PolicyProjection } from './policy-projection.ts';
import type { ProjectionOptions } from './settings/projection-options.ts';
import type { StatusFields } from './status-terms.ts';
import { rangePolicy } from './testing/sample-cluster.ts';

const kind = (apiVersion: string, name: string) => kubernetesKind(apiVersion, name) ?? assert.fail(name);
const POLICIES = kind('networking.k8s.io/v1', 'NetworkPolicy');
const KEY = { namespace: 'shop', name: 'myegress' };
const { signal } = new AbortController();
const TEXT = 'Accepted=False, FeatureNotSupported, FailClosed: allows only port 30000';

function status(changes: Partial<StatusFields> = {}): StatusFields {
  const accepted = {
    type: 'Accepted',
    status: 'False',
    reason: 'FeatureNotSupported',
    message: 'allows only port 30000',
    lastTransitionTime: '2026-11-24T08:00:00Z',
  } as const;
  return { summary: { providers: 'cilium 1.15.4', effect: 'FailClosed' }, conditions: [accepted], ...changes };
}

describe('the status in the NetworkPolicy itself', () => {
  let cluster: EmbeddedCluster;
  let writes: number;

  const policy = (): Promise<KubernetesObject> => cluster.admin.get<KubernetesObject>(POLICIES, KEY);
  const write = async (options: ProjectionOptions, fields = status()): Promise<void> => {
    const object = await policy();
    const projection = new PolicyProjection(
      {
        patch: (...request) => {
          writes += 1;
          return cluster.admin.patch(...request);
        },
      },
      { get: () => object, subscribe: () => () => {} },
      options,
    );
    await projection.write(object, fields, signal);
  };

  beforeEach(async () => {
    writes = 0;
    cluster = await EmbeddedCluster.open({ networkPolicyStatus: true });
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } };
    await cluster.admin.create(kind('v1', 'Namespace'), namespace);
    await cluster.admin.create(POLICIES, rangePolicy());
  });

  afterEach(() => cluster[Symbol.asyncDispose]());

  it('is not written by default', async () => {
    await write({});
    assert.equal(writes, 0);
  });

  it('is an annotation, written when it changes, and removed', async () => {
    const before = await policy();
    await write({ annotation: 'write' });
    await write({ annotation: 'write' });
    assert.equal(writes, 1);
    const { metadata, spec } = await policy();
    assert.equal(metadata.annotations?.[ANNOTATIONS.networkPolicyStatus], TEXT);
    assert.deepEqual([spec, metadata.generation], [before['spec'], before.metadata.generation]);
    await write({ annotation: 'remove' });
    await write({ annotation: 'remove' });
    assert.equal(writes, 2);
    assert.equal((await policy()).metadata.annotations, undefined);
  });

  it('never creates or changes a NetworkPolicy that replaced the one of the status', async () => {
    const object = await policy();
    await cluster.admin.delete(POLICIES, KEY);
    const known = { get: () => object, subscribe: () => () => {} };
    const projection = new PolicyProjection(cluster.admin, known, { annotation: 'write', subresource: true });
    await projection.write(object, status(), signal);
    await assert.rejects(policy(), { code: 404 });
    const { metadata } = await cluster.admin.create<KubernetesObject>(POLICIES, rangePolicy());
    await assert.rejects(projection.write(object, status(), signal), { code: 409 });
    assert.deepEqual((await policy()).metadata, metadata);
  });

  it('is its subresource, beside conditions of others', async () => {
    const { apiVersion, kind: name } = POLICY_TYPE;
    const other = { ...status().conditions?.[0], type: 'example.com/Programmed', status: 'True' };
    const body = { apiVersion, kind: name, metadata: KEY, status: { conditions: [other] } };
    const options = { fieldManager: 'example', subresource: 'status' };
    await cluster.admin.patch(POLICIES, KEY, { type: 'apply', body }, options);
    await write({ subresource: true });
    await write({ subresource: true });
    assert.equal(writes, 1);
    assert.deepEqual((await policy())['status'], { conditions: [other, ...(status().conditions ?? [])] });
    await write({ subresource: true }, { conditions: [] });
    assert.deepEqual((await policy())['status'], { conditions: [other] });
  });

  it('is short', () => {
    const [accepted] = status().conditions ?? [];
    const long = accepted === undefined ? [] : [{ ...accepted, message: 'x'.repeat(5000) }];
    assert.equal(annotationOf(status()), TEXT);
    assert.equal(annotationOf(status({ conditions: long })).length, 512);
  });
});

const POLICY_TYPE = { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy' };
