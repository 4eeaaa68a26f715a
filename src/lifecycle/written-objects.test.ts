import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubernetesObject } from '../resources/index.ts';
import { ObjectStore } from '../runtime/index.ts';
import { WrittenObjects } from './written-objects.ts';

const KEY = { name: 'a' };

function object(resourceVersion: string, uid = 'u', name = 'a'): KubernetesObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, uid, resourceVersion } };
}

function scene(...items: readonly KubernetesObject[]): { cache: ObjectStore; objects: WrittenObjects } {
  const cache = new ObjectStore();
  cache.replace(items);
  return { cache, objects: new WrittenObjects(cache) };
}

const versionIn = (objects: WrittenObjects): string | undefined => objects.get(KEY)?.metadata.resourceVersion;

describe('WrittenObjects', () => {
  it('shows what was written until the cache has seen it, and what came after it', () => {
    const { cache, objects } = scene(object('5'));
    objects.wrote(KEY, object('7'));
    assert.equal(versionIn(objects), '7');
    // Somebody else's write, from before ours.
    cache.apply({ type: 'MODIFIED', object: object('6') });
    assert.equal(versionIn(objects), '7');
    cache.apply({ type: 'MODIFIED', object: object('10') });
    assert.equal(versionIn(objects), '10');
  });

  it('believes a cache that is ahead of an answer that comes late', () => {
    const { objects } = scene(object('10'));
    objects.wrote(KEY, object('9'));
    assert.equal(versionIn(objects), '10');
  });

  it('shows what was made before the cache does', () => {
    const { cache, objects } = scene();
    objects.wrote(KEY, object('3'));
    assert.equal(objects.current(cache.list(), () => true).length, 1);
    assert.equal(objects.current(cache.list(), () => false).length, 0);
    cache.apply({ type: 'ADDED', object: object('3') });
    assert.equal(objects.current(cache.list(), () => true).length, 1);
    cache.apply({ type: 'DELETED', object: object('4') });
    assert.equal(objects.get(KEY), undefined);
  });

  it('does not show what was deleted, but another one of its name', () => {
    const { cache, objects } = scene(object('3'));
    objects.wrote(KEY, undefined);
    assert.equal(objects.get(KEY), undefined);
    assert.deepEqual(
      objects.current(cache.list(), () => true),
      [],
    );
    cache.apply({ type: 'MODIFIED', object: object('9', 'another') });
    assert.equal(versionIn(objects), '9');
  });

  it('forgets what the cluster says is not so', () => {
    const { objects } = scene(object('3'));
    objects.wrote(KEY, object('5'));
    objects.forget(KEY);
    assert.equal(versionIn(objects), '3');
  });
});
