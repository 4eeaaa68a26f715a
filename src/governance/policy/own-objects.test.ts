import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Cluster } from '../../cluster/index.ts';
import { ApiError } from '../../cluster/index.ts';
import { type KubernetesObject, POLICIES, type Policy } from '../../resources/index.ts';
import { ObjectStore } from '../../runtime/index.ts';
import { OwnObjects } from './own-objects.ts';

const KEY = { namespace: 'local-cluster', name: 'a' };
const { signal } = new AbortController();

function policy(metadata: KubernetesObject['metadata'] = {}): Policy {
  return {
    apiVersion: 'policy.open-cluster-management.io/v1',
    kind: 'Policy',
    metadata: { ...KEY, uid: 'u', resourceVersion: '5', ...metadata },
    spec: { disabled: false, 'policy-templates': [] },
  };
}

/** @param answer to each patch; an error is thrown */
function scene(stored: Policy, answer: Policy | ApiError): { objects: OwnObjects<Policy>; bodies: unknown[] } {
  const cache = new ObjectStore<Policy>();
  cache.replace([stored]);
  const bodies: unknown[] = [];
  const cluster = {
    patch: (_type: unknown, _key: unknown, { body }: { readonly body: unknown }) => {
      bodies.push(body);
      return answer instanceof ApiError ? Promise.reject(answer) : Promise.resolve(answer);
    },
    update: () => assert.fail('an update would remove the annotation of `kubectl apply`, which caches lack'),
  } as unknown as Pick<Cluster, 'patch' | 'update'>;
  const view = { type: POLICIES, get: cache.get.bind(cache), subscribe: cache.subscribe.bind(cache) };
  return { objects: new OwnObjects(cluster, view), bodies };
}

describe('a status', () => {
  it('is written with texts that control no terminal, and not again', async () => {
    const written: Policy[] = [];
    const cache = new ObjectStore<Policy>();
    const cluster = {
      update: (_type: unknown, body: Policy) => {
        written.push(body);
        return Promise.resolve(body);
      },
    } as unknown as Pick<Cluster, 'patch' | 'update'>;
    const view = { type: POLICIES, get: cache.get.bind(cache), subscribe: cache.subscribe.bind(cache) };
    const objects = new OwnObjects<Policy>(cluster, view);
    const status = { placement: [{ placement: 'evil\u001B[2J\u001B]8;;a:b\u009B2J\u202Etxt' }] };
    assert.ok(await objects.writeStatus(policy(), status, signal));
    assert.deepEqual(written[0]?.status, {
      placement: [{ placement: 'evil\u{fffd}[2J\u{fffd}]8;;a:b\u{fffd}2J\u{fffd}txt' }],
    });
    assert.equal(await objects.writeStatus(written[0], status, signal), false);
  });
});

describe('a finalizer', () => {
  it('is added beside those of others, by a patch of the version that was read', async () => {
    const { objects, bodies } = scene(policy({ finalizers: ['other'] }), policy({ resourceVersion: '6' }));
    await objects.setFinalizer(policy({ finalizers: ['other'] }), 'ours', true, signal);
    assert.deepEqual(bodies, [{ metadata: { resourceVersion: '5', finalizers: ['other', 'ours'] } }]);
    assert.equal(objects.get(KEY)?.metadata.resourceVersion, '6');
  });

  it('is not written when it is as it should be', async () => {
    const { objects, bodies } = scene(policy(), policy());
    await objects.setFinalizer(policy({ finalizers: ['ours'] }), 'ours', true, signal);
    await objects.setFinalizer(policy(), 'ours', false, signal);
    assert.deepEqual(bodies, []);
  });

  const terminating = { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['ours'] };
  for (const [name, answer] of [
    ['is removed as the last one', policy({ ...terminating, finalizers: [] })],
    ['is removed of an object that is gone', new ApiError(404, 'NotFound', 'policies "a" not found')],
  ] as const) {
    it(`${name}: the object is gone at once`, async () => {
      const { objects } = scene(policy(terminating), answer);
      await objects.setFinalizer(policy(terminating), 'ours', false, signal);
      assert.equal(objects.get(KEY), undefined);
    });
  }
});
