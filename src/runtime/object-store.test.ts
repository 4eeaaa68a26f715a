import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { KubernetesObject } from '../resources/index.ts';
import { deepFreeze } from '../values/index.ts';
import { withoutBookkeeping } from './bookkeeping.ts';
import { ObjectStore } from './object-store.ts';
import type { Change } from './object-store.ts';

let versions = 0;

function object(name: string, extra: Partial<KubernetesObject['metadata']> = {}, spec?: unknown): KubernetesObject {
  return {
    apiVersion: 'v1',
    kind: 'Thing',
    metadata: { name, uid: `uid-${name}`, resourceVersion: String((versions += 1)), ...extra },
    ...(spec === undefined ? {} : { spec }),
  };
}

function namesOf(objects: Iterable<KubernetesObject>): string[] {
  return [...objects].map(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name}`).sort();
}

function changeText({ before, after, isInitial }: Change): string {
  const verb = before === undefined ? 'added' : after === undefined ? 'deleted' : 'changed';
  return `${verb} ${(after ?? before)?.metadata.name}${isInitial ? ' at first' : ''}`;
}

describe('ObjectStore', () => {
  it('returns objects by key and by namespace', () => {
    const store = new ObjectStore();
    store.replace([
      object('a', { namespace: 'x' }),
      object('b', { namespace: 'x' }),
      object('a', { namespace: 'y' }),
      object('c'),
    ]);
    assert.equal(store.size, 4);
    assert.equal(store.get({ namespace: 'y', name: 'a' })?.metadata.namespace, 'y');
    assert.equal(store.get({ name: 'c' })?.metadata.name, 'c');
    assert.equal(store.get({ name: 'a' }), undefined);
    assert.deepEqual(namesOf(store.list('x')), ['x/a', 'x/b']);
    assert.deepEqual(namesOf(store.list()), ['/c', 'x/a', 'x/b', 'y/a']);
    store.apply({ type: 'DELETED', object: object('a', { namespace: 'y' }) });
    assert.deepEqual([...store.namespaces()].sort(), ['', 'x']);
  });

  it('passes listeners the object before and after a change', () => {
    const store = new ObjectStore();
    store.replace([object('a')]);
    const seen: Change[] = [];
    const stop = store.subscribe((change) => seen.push(change));
    const first = store.get({ name: 'a' });
    store.apply({ type: 'MODIFIED', object: object('a') });
    store.apply({ type: 'ADDED', object: object('b') });
    store.apply({ type: 'DELETED', object: object('a') });
    stop();
    store.apply({ type: 'DELETED', object: object('b') });
    assert.deepEqual(seen.map(changeText), ['added a at first', 'changed a', 'added b', 'deleted a']);
    assert.equal(seen[1]?.before, first);
  });

  it('reports only differences of a new list', () => {
    const store = new ObjectStore();
    const kept = object('kept');
    store.replace([kept, object('changed'), object('gone')]);
    const before = store.get({ name: 'kept' });
    const seen: string[] = [];
    store.subscribe((change) => seen.push(changeText(change)));
    seen.length = 0;
    const { revision } = store;
    store.replace([{ ...kept }, object('changed'), object('new')]);
    assert.deepEqual(seen, ['changed changed', 'added new', 'deleted gone']);
    assert.equal(store.get({ name: 'kept' }), before);
    assert.equal(store.revision, revision + 3);
  });

  it('reports an object that was deleted and created again as two changes', () => {
    const store = new ObjectStore();
    store.replace([object('a', { uid: 'one' })]);
    const seen: string[] = [];
    store.subscribe((change) => seen.push(`${changeText(change)} ${(change.after ?? change.before)?.metadata.uid}`));
    store.replace([object('a', { uid: 'two' })]);
    assert.deepEqual(seen, ['added a at first one', 'deleted a one', 'added a two']);
    assert.equal(store.size, 1);
  });

  it('continues when a listener or an index function throws, and reports the error', () => {
    const errors: unknown[] = [];
    const store = new ObjectStore({ onError: (error) => errors.push(error) });
    const index = store.index(({ metadata }) => {
      if (metadata.name === 'bad') {
        throw new Error('no index');
      }
      return ['all'];
    });
    const seen: string[] = [];
    store.subscribe(() => {
      throw new Error('no listener');
    });
    store.subscribe((change) => seen.push(changeText(change)));
    store.replace([object('bad'), object('good')]);
    assert.deepEqual(seen, ['added bad at first', 'added good at first']);
    assert.deepEqual(namesOf(index.get('all')), ['/good']);
    assert.equal(errors.length, 3);
  });

  it('stores the whole object when its transform fails, and the objects after it', () => {
    const errors: unknown[] = [];
    const transform = (thing: KubernetesObject): KubernetesObject => {
      if (thing.metadata.name === 'bad') {
        throw new Error('no');
      }
      return thing;
    };
    const store = new ObjectStore({ transform, onError: (error) => errors.push(error) });
    store.replace([object('bad'), object('good')]);
    assert.deepEqual(namesOf(store.list()), ['/bad', '/good']);
    assert.equal(errors.length, 1);
  });

  it('finds objects by owner', () => {
    const store = new ObjectStore();
    const owner = (uid: string) => ({ apiVersion: 'v1', kind: 'Owner', name: uid, uid });
    store.replace([
      object('a', { ownerReferences: [owner('x'), owner('y')] }),
      object('b', { ownerReferences: [owner('y')] }),
      object('c'),
    ]);
    assert.deepEqual(namesOf(store.ownedBy('y')), ['/a', '/b']);
    store.apply({ type: 'MODIFIED', object: object('a', { ownerReferences: [owner('x')] }) });
    assert.deepEqual(namesOf(store.ownedBy('y')), ['/b']);
    assert.deepEqual(namesOf(store.ownedBy('x')), ['/a']);
    assert.deepEqual(namesOf(store.ownedBy('z')), []);
  });

  it('returns frozen objects, reduced by its transform', () => {
    const store = new ObjectStore({ transform: withoutBookkeeping });
    const applied = 'kubectl.kubernetes.io/last-applied-configuration';
    const given = object(
      'a',
      { managedFields: [{ manager: 'm' }], annotations: { [applied]: '{}', mine: '1' } },
      { list: [{ deep: true }] },
    );
    store.replace([given]);
    const kept = store.get({ name: 'a' }) as KubernetesObject & {
      metadata: KubernetesObject['metadata'];
      spec: { list: { deep: boolean }[] };
    };
    assert.equal(kept.metadata.managedFields, undefined);
    assert.deepEqual(kept.metadata.annotations, { mine: '1' });
    assert.throws(() => (kept.spec.list[0]!.deep = false), TypeError);
    assert.throws(() => kept.spec.list.push({ deep: true }), TypeError);
    assert.throws(() => Object.assign(kept.metadata, { name: 'b' }), TypeError);
    assert.equal(given.metadata.managedFields?.length, 1);
  });

  it('accepts names that are properties of Object.prototype', () => {
    const store = new ObjectStore();
    const names = ['__proto__', 'constructor', 'toString'];
    const index = store.index(({ metadata }) => Object.keys(metadata.labels ?? {}));
    store.replace(names.map((name) => object(name, { namespace: name, labels: JSON.parse(`{"${name}":"x"}`) })));
    for (const name of names) {
      assert.equal(store.get({ namespace: name, name })?.metadata.name, name);
      assert.equal(index.get(name).length, 1);
    }
    assert.equal(store.get({ namespace: 'hasOwnProperty', name: 'a' }), undefined);
  });

  it('freezes objects that are nested as deeply as a request allows', () => {
    const depth = 100_000;
    const deep: unknown = JSON.parse('['.repeat(depth) + ']'.repeat(depth));
    assert.equal(Object.isFrozen(deepFreeze(deep)), true);
  });

  it('behaves as a map whose indexes equal newly built ones', () => {
    const name = fc.constantFrom('a', 'b', 'c', 'd');
    const namespace = fc.constantFrom('x', 'y', undefined);
    const labels = fc.dictionary(fc.constantFrom('k', 'l'), fc.constantFrom('1', '2'));
    const thing = fc
      .record({ name, namespace, labels, uid: fc.constantFrom('1', '2') })
      .map(({ namespace, ...rest }) => ({
        ...rest,
        ...(namespace === undefined ? {} : { namespace }),
      }));
    const command = fc.oneof(
      { weight: 5, arbitrary: fc.record({ type: fc.constantFrom('ADDED', 'MODIFIED'), thing }) },
      { weight: 3, arbitrary: fc.record({ type: fc.constant('DELETED'), thing }) },
      { weight: 1, arbitrary: fc.record({ type: fc.constant('REPLACE'), things: fc.array(thing, { maxLength: 6 }) }) },
    );
    const byLabel = ({ metadata }: KubernetesObject): string[] =>
      Object.entries(metadata.labels ?? {}).map(([k, v]) => `${k}=${v}`);
    const keyed = ({ namespace = '', name = '' }: { namespace?: string; name?: string }): string =>
      `${namespace}/${name}`;
    fc.assert(
      fc.property(fc.array(command, { maxLength: 40 }), (commands) => {
        const store = new ObjectStore();
        const index = store.index(byLabel);
        const model = new Map<string, KubernetesObject>();
        /** The objects of a listener that only applies changes. */
        const followed = new Map<string, KubernetesObject>();
        store.subscribe(({ before, after }) => {
          assert.equal(followed.get(keyed((before ?? after).metadata)), before);
          if (after === undefined) {
            followed.delete(keyed(before.metadata));
          } else {
            followed.set(keyed(after.metadata), after);
          }
        });
        for (const step of commands) {
          if ('things' in step) {
            const items = [...new Map(step.things.map((entry) => [keyed(entry), object(entry.name, entry)])).values()];
            model.clear();
            items.forEach((item) => model.set(keyed(item.metadata), item));
            store.replace(items);
          } else {
            const item = object(step.thing.name, step.thing);
            if (step.type === 'DELETED') {
              model.delete(keyed(item.metadata));
            } else {
              model.set(keyed(item.metadata), item);
            }
            store.apply({ type: step.type, object: item });
          }
          assert.deepEqual(namesOf(store.list()), namesOf(model.values()));
          assert.equal(store.size, model.size);
        }
        assert.deepEqual(new Map(followed), new Map(store.list().map((entry) => [keyed(entry.metadata), entry])));
        const rebuilt = new Map<string, string[]>();
        for (const entry of model.values()) {
          for (const value of byLabel(entry)) {
            rebuilt.set(value, [...(rebuilt.get(value) ?? []), keyed(entry.metadata)].sort());
          }
        }
        assert.deepEqual(new Map([...index.values()].map((value) => [value, namesOf(index.get(value))])), rebuilt);
      }),
      { numRuns: 200 },
    );
  });
});
