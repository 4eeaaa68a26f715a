import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { pino } from 'pino';
import { EmbeddedCluster } from '../apiserver/index.ts';
import { ApiError, type Cluster } from '../cluster/index.ts';
import { ANNOTATIONS, kubernetesKind, type KubernetesObject } from '../resources/index.ts';
import { annotationOf, PolicyProjection } from './policy-projection.ts';
import type { AnnotationMode } from './settings/annotation-mode.ts';
import type { StatusFields } from './status-terms.ts';
import { rangePolicy } from './testing/sample-cluster.ts';

const kind = (apiVersion: string, name: string) => kubernetesKind(apiVersion, name) ?? assert.fail(name);
const POLICIES = kind('networking.k8s.io/v1', 'NetworkPolicy');
const KEY = { namespace: 'shop', name: 'myegress' };
const { signal } = new AbortController();
const TEXT =
  'Accepted=False, FeatureNotSupported, FailClosed, generation 1, since 2026-11-24T08:00:00Z: allows only port 30000';

function status(changes: Partial<StatusFields> = {}): StatusFields {
  const accepted = {
    type: 'Accepted',
    status: 'False',
    reason: 'FeatureNotSupported',
    message: 'allows only port 30000',
    lastTransitionTime: '2026-11-24T08:00:00Z',
  } as const;
  return {
    observedGeneration: 1,
    summary: { providers: 'cilium 1.15.4', effect: 'FailClosed' },
    conditions: [accepted],
    ...changes,
  };
}

describe('the status in the NetworkPolicy itself', () => {
  let cluster: EmbeddedCluster;
  let writes: number;

  const policy = (): Promise<KubernetesObject> => cluster.admin.get<KubernetesObject>(POLICIES, KEY);
  const projection = (
    annotation: AnnotationMode,
    patch: Cluster['patch'],
    object: KubernetesObject,
  ): PolicyProjection =>
    new PolicyProjection({
      cluster: { patch },
      discovery: cluster.admin.discovery,
      policies: { get: () => object, subscribe: () => () => {} },
      annotation,
      log: pino({ level: 'silent' }),
    });
  const write = async (annotation: AnnotationMode, fields = status()): Promise<void> => {
    const object = await policy();
    const patch: Cluster['patch'] = (...request) => {
      writes += 1;
      return cluster.admin.patch(...request);
    };
    await projection(annotation, patch, object).write(object, fields, signal);
  };

  const open = async (networkPolicyStatus: boolean): Promise<void> => {
    writes = 0;
    cluster = await EmbeddedCluster.open({ networkPolicyStatus });
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } };
    await cluster.admin.create(kind('v1', 'Namespace'), namespace);
    await cluster.admin.create(POLICIES, rangePolicy());
  };

  beforeEach(() => open(false));
  afterEach(() => cluster[Symbol.asyncDispose]());

  it('is not written by default, where API servers have no such field', async () => {
    await write('none');
    assert.equal(writes, 0);
  });

  for (const off of ['remove', 'none'] as const) {
    it(`is an annotation, written when it changes, and removed by ${off}`, async () => {
      const before = await policy();
      await write('write');
      await write('write');
      assert.equal(writes, 1);
      const { metadata, spec } = await policy();
      assert.equal(metadata.annotations?.[ANNOTATIONS.networkPolicyStatus], TEXT);
      assert.deepEqual([spec, metadata.generation], [before['spec'], before.metadata.generation]);
      await write(off);
      await write(off);
      assert.equal(writes, 2);
      assert.equal((await policy()).metadata.annotations, undefined);
    });
  }

  it('stays where it is switched off and the right is gone, which is not tried again', async () => {
    await write('write');
    const object = await policy();
    let attempts = 0;
    const patch = (): Promise<never> => {
      attempts += 1;
      return Promise.reject(new ApiError(403, 'Forbidden', 'no'));
    };
    const off = projection('none', patch, object);
    await off.write(object, status(), signal);
    await off.write(object, status(), signal);
    assert.equal(attempts, 1);
    await assert.rejects(projection('remove', patch, object).write(object, status(), signal), { code: 403 });
  });

  it('never creates or changes a NetworkPolicy that replaced the one of the status', async () => {
    await cluster[Symbol.asyncDispose]();
    await open(true);
    const object = await policy();
    await cluster.admin.delete(POLICIES, KEY);
    const written = projection('write', cluster.admin.patch.bind(cluster.admin), object);
    await written.write(object, status(), signal);
    await assert.rejects(policy(), { code: 404 });
    const { metadata } = await cluster.admin.create<KubernetesObject>(POLICIES, rangePolicy());
    await assert.rejects(written.write(object, status(), signal), { code: 409 });
    assert.deepEqual((await policy()).metadata, metadata);
  });

  it('is its status where the API server serves one, beside conditions of others', async () => {
    await cluster[Symbol.asyncDispose]();
    await open(true);
    const { apiVersion, kind: name } = POLICY_TYPE;
    const other = { ...status().conditions?.[0], type: 'example.com/Programmed', status: 'True' };
    const body = { apiVersion, kind: name, metadata: KEY, status: { conditions: [other] } };
    const options = { fieldManager: 'example', subresource: 'status' };
    await cluster.admin.patch(POLICIES, KEY, { type: 'apply', body }, options);
    await write('none');
    await write('none');
    assert.equal(writes, 1);
    assert.deepEqual((await policy())['status'], { conditions: [other, ...(status().conditions ?? [])] });
    await write('none', { conditions: [] });
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
