import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubernetesObject } from '../resources/index.ts';
import { ObjectStore } from './object-store.ts';
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
  it('shows a write until the cache has it, then newer versions', () => {
    const { cache, objects } = scene(object('5'));
    objects.recordWrite(KEY, object('7'));
    assert.equal(versionIn(objects), '7');
    // Another writer's version, older than ours.
    cache.apply({ type: 'MODIFIED', object: object('6') });
    assert.equal(versionIn(objects), '7');
    cache.apply({ type: 'MODIFIED', object: object('10') });
    assert.equal(versionIn(objects), '10');
  });

  it('prefers the cache when it is newer than a late response', () => {
    const { objects } = scene(object('10'));
    objects.recordWrite(KEY, object('9'));
    assert.equal(versionIn(objects), '10');
  });

  it('shows a created object before the cache does', () => {
    const { cache, objects } = scene();
    objects.recordWrite(KEY, object('3'));
    assert.equal(objects.current(cache.list(), () => true).length, 1);
    assert.equal(objects.current(cache.list(), () => false).length, 0);
    cache.apply({ type: 'ADDED', object: object('3') });
    assert.equal(objects.current(cache.list(), () => true).length, 1);
    cache.apply({ type: 'DELETED', object: object('4') });
    assert.equal(objects.get(KEY), undefined);
  });

  it('hides a deleted object, but not a new one of the same name', () => {
    const { cache, objects } = scene(object('3'));
    objects.recordWrite(KEY, undefined);
    assert.equal(objects.get(KEY), undefined);
    assert.deepEqual(
      objects.current(cache.list(), () => true),
      [],
    );
    cache.apply({ type: 'MODIFIED', object: object('9', 'another') });
    assert.equal(versionIn(objects), '9');
  });

  it('shows the cached object again after a write is forgotten', () => {
    const { objects } = scene(object('3'));
    objects.recordWrite(KEY, object('5'));
    objects.forget(KEY);
    assert.equal(versionIn(objects), '3');
  });
});
