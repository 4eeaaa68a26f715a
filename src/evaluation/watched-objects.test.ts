import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MAX_PARSED_OBJECTS, type WatchedChange, WatchedObjects } from './watched-objects.ts';

const QUOTA = { apiVersion: 'example.dev/v1', kind: 'Quota' };
const NAMESPACE = { apiVersion: 'v1', kind: 'Namespace' };
const UNKNOWN = { state: 'unknown' } as const;

function change(kind: typeof QUOTA, objects: WatchedChange['objects'], isAll = false): WatchedChange {
  return { ...kind, isAll, objects };
}

describe('watched objects', () => {
  it('are found by kind, namespace and name', () => {
    const watched = new WatchedObjects();
    watched.apply(change(QUOTA, [[{ namespace: 'shop', name: 'a' }, '{"spec":{"pods":1}}']]));
    watched.apply(change(NAMESPACE, [[{ name: 'a' }, '{"metadata":{}}']]));
    const found = { state: 'found', object: { spec: { pods: 1 } } };
    assert.deepEqual(watched.find({ ...QUOTA, namespace: 'shop', name: 'a' }), found);
    assert.deepEqual(watched.find({ ...NAMESPACE, name: 'a' }), { state: 'found', object: { metadata: {} } });
    assert.deepEqual(watched.find({ ...QUOTA, namespace: 'office', name: 'a' }), UNKNOWN);
    assert.deepEqual(watched.find({ ...QUOTA, name: 'a' }), UNKNOWN);
    assert.deepEqual(watched.find({ ...NAMESPACE, namespace: 'shop', name: 'a' }), UNKNOWN);
  });

  it('are unknown when they are gone, and all of a kind are replaced by a list of it', () => {
    const watched = new WatchedObjects();
    watched.apply(change(NAMESPACE, [[{ name: 'a' }, '{}']]));
    watched.apply(
      change(
        QUOTA,
        ['a', 'b', 'c'].map((name) => [{ namespace: 'shop', name }, JSON.stringify({ name })]),
      ),
    );
    watched.apply(change(QUOTA, [[{ namespace: 'shop', name: 'a' }, undefined]]));
    assert.deepEqual(watched.find({ ...QUOTA, namespace: 'shop', name: 'a' }), UNKNOWN);
    watched.apply(change(QUOTA, [[{ namespace: 'shop', name: 'b' }, '{"name":"new"}']], true));
    assert.deepEqual(watched.find({ ...QUOTA, namespace: 'shop', name: 'c' }), UNKNOWN);
    assert.equal(watched.find({ ...NAMESPACE, name: 'a' }).state, 'found', 'other kinds stay');
    watched.apply(change(QUOTA, [], true));
    assert.deepEqual(
      watched.changes().map(({ kind }) => kind),
      ['Namespace'],
    );
  });

  it('are parsed once, until others were looked up since', () => {
    const watched = new WatchedObjects();
    const object = { ...QUOTA, namespace: 'shop', name: 'a' };
    watched.apply(change(QUOTA, [[{ namespace: 'shop', name: 'a' }, '{"spec":{"__proto__":1}}']]));
    const first = watched.find(object);
    assert.ok(first.state === 'found');
    assert.equal(JSON.stringify(first.object), '{"spec":{"__proto__":1}}');
    assert.equal(watched.find(object), first);
    const others = Array.from({ length: MAX_PARSED_OBJECTS }, (_, index) => ({ namespace: 'shop', name: `b${index}` }));
    watched.apply(
      change(
        QUOTA,
        others.map((key) => [key, '{}']),
      ),
    );
    others.forEach((other) => watched.find({ ...QUOTA, ...other }));
    const again = watched.find(object);
    assert.notEqual(again, first);
    assert.deepEqual(again, first);
  });

  it('have the object before their last change, also in a worker that starts later', () => {
    const [early, late] = [new WatchedObjects(), new WatchedObjects()];
    const object = { ...QUOTA, namespace: 'shop', name: 'a' };
    for (const text of ['{"pods":1}', '{"pods":2}', '{"pods":2}']) {
      early.apply(change(QUOTA, [[{ namespace: 'shop', name: 'a' }, text]], true));
    }
    for (const one of structuredClone(early.changes())) {
      late.apply(one);
    }
    const found = { state: 'found', object: { pods: 2 }, previous: { pods: 1 } };
    assert.deepEqual([early.find(object), late.find(object)], [found, found]);
    assert.equal(late.find(object), late.find(object));
    early.apply(change(QUOTA, [[{ namespace: 'shop', name: 'a' }, undefined]]));
    early.apply(change(QUOTA, [[{ namespace: 'shop', name: 'a' }, '{}']]));
    assert.deepEqual(early.find(object), { state: 'found', object: {} });
  });

  it('have it also after a moment in which they could not be read', () => {
    const key = { namespace: 'shop', name: 'a' };
    const watched = new WatchedObjects();
    watched.apply(change(QUOTA, [[key, '{"pods":1}']]));
    watched.apply(change(QUOTA, [[key, undefined, { state: 'unreadable', reason: 'too large' }]]));
    assert.deepEqual(watched.changes()[0]?.objects[0]?.[3], '{"pods":1}');
    watched.apply(change(QUOTA, [[key, '{"pods":2}']]));
    assert.deepEqual(watched.find({ ...QUOTA, ...key }), {
      state: 'found',
      object: { pods: 2 },
      previous: { pods: 1 },
    });
  });

  it('may be known to be absent', () => {
    const watched = new WatchedObjects();
    const absent = { state: 'absent' } as const;
    watched.apply(change(QUOTA, [[{ namespace: 'shop', name: 'a' }, undefined, absent]]));
    assert.equal(watched.find({ ...QUOTA, namespace: 'shop', name: 'a' }), absent);
    watched.apply(change(QUOTA, [[{ namespace: 'shop', name: 'a' }, '{}']]));
    assert.equal(watched.find({ ...QUOTA, namespace: 'shop', name: 'a' }).state, 'found');
  });

  it('are unknown without an annotation that a lookup needs', () => {
    const watched = new WatchedObjects();
    const object = { ...NAMESPACE, name: 'a', annotations: ['uid'] };
    watched.apply(change(NAMESPACE, [[{ name: 'a' }, '{"metadata":{"labels":{}}}']]));
    assert.deepEqual(watched.find(object), UNKNOWN);
    assert.equal(watched.find({ ...NAMESPACE, name: 'a' }).state, 'found');
    watched.apply(change(NAMESPACE, [[{ name: 'a' }, '{"metadata":{"labels":{},"annotations":{"uid":null}}}']]));
    assert.equal(watched.find(object).state, 'found');
  });

  it('are the same for a worker that starts later', () => {
    const [early, late] = [new WatchedObjects(), new WatchedObjects()];
    early.apply(change(QUOTA, [[{ namespace: 'shop', name: 'a' }, '{"spec":{}}']]));
    early.apply(change(QUOTA, [[{ namespace: 'shop', name: 'b' }, '{}']]));
    early.apply(change(QUOTA, [[{ namespace: 'shop', name: 'c' }, undefined, { state: 'absent' }]]));
    early.apply(change(NAMESPACE, [[{ name: 'a' }, '{}']]));
    for (const one of structuredClone(early.changes())) {
      late.apply(one);
    }
    assert.deepEqual(late.changes(), early.changes());
  });

  it('that a review was read in vain for have that result, while workers do not have them', () => {
    const watched = new WatchedObjects();
    const object = { ...QUOTA, namespace: 'shop', name: 'a' };
    const lookup = watched.after([{ object, result: { state: 'absent' } }]);
    assert.deepEqual(lookup.find(object), { state: 'absent' });
    assert.deepEqual(lookup.find({ ...object, name: 'b' }), UNKNOWN);
    watched.apply(change(QUOTA, [[{ namespace: 'shop', name: 'a' }, '{}']]));
    assert.equal(lookup.find(object).state, 'found');
  });
});
