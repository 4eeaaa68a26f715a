import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject, ObjectReference } from '../../engine/index.ts';
import { FileObjects, type ObjectFinder } from './file-objects.ts';

const LIMITS: ObjectReference = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'shop', name: 'limits' };

describe('objects in files', () => {
  const published: (string | undefined)[] = [];
  const asked: ObjectReference[] = [];
  const withObject = (object: JsonObject | undefined): ObjectFinder => ({
    find: (reference) => {
      asked.push(reference);
      return object === undefined ? { state: 'absent' } : { state: 'found', object };
    },
  });
  const objects = new FileObjects(({ objects: changed }) => published.push(...changed.map(([, text]) => text)));
  const since = (): readonly (string | undefined)[] => published.splice(0);

  it('are unreadable where there are no manifests', () => {
    assert.deepEqual(objects.find(LIMITS), { state: 'unreadable', reason: 'a policies file has no cluster' });
  });

  it('are published when a policy looks them up, and again when they change, until they are gone', () => {
    objects.replace(withObject({ data: 1 }));
    assert.deepEqual(since(), []);
    assert.deepEqual(objects.find(LIMITS), { state: 'published' });
    assert.deepEqual(since(), ['{"data":1}']);
    objects.replace(withObject({ data: 2 }));
    assert.deepEqual(since(), ['{"data":2}']);
    objects.replace(withObject(undefined));
    assert.deepEqual(since(), [undefined]);
    assert.deepEqual(objects.find(LIMITS), { state: 'absent' });
    objects.replace(withObject({ data: 3 }));
    assert.deepEqual(since(), []);
  });

  it('are published with the annotations of all policies', () => {
    objects.find({ ...LIMITS, annotations: ['a'] });
    objects.find({ ...LIMITS, annotations: ['b'] });
    asked.splice(0);
    objects.replace(withObject({ data: 4 }));
    assert.deepEqual(asked[0]?.annotations, ['a', 'b']);
  });
});
