import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../../cluster/index.ts';
import type { KubernetesObject, MutableObject } from '../../../resources/index.ts';
import { MAX_HISTORY_SIZE } from './change-log.ts';
import { MemoryJournal } from './journal.ts';
import type { Journal, JournalEntry } from './journal.ts';
import { MAX_OBJECT_BYTES, CollectionStore } from './collection-store.ts';

const THINGS = 'things.example.com';

function thing(name: string, namespace = 'a', value = ''): MutableObject {
  return { apiVersion: 'example.com/v1', kind: 'Thing', metadata: { name, namespace }, value };
}

function put(store: CollectionStore, object: MutableObject, expected?: KubernetesObject): KubernetesObject {
  const stored = store.commit([{ type: 'put', collection: THINGS, object, expected }])?.[0];
  assert.ok(stored);
  return stored;
}

function names(objects: Iterable<KubernetesObject> | undefined): (string | undefined)[] {
  return [...(objects ?? [])].map(({ metadata }) => metadata.name);
}

test('each change has its own version, and stored objects never change', () => {
  const store = new CollectionStore({ journal: new MemoryJournal() });
  const first = put(store, thing('x'));
  const second = put(store, thing('x', 'a', 'new'), first);
  assert.deepEqual([first.metadata.resourceVersion, second.metadata.resourceVersion], ['1', '2']);
  assert.equal(store.get(THINGS, 'a', 'x'), second);
  assert.ok(Object.isFrozen(second.metadata));
});

test('nothing is written when one object is not the expected one', () => {
  const store = new CollectionStore({ journal: new MemoryJournal() });
  const first = put(store, thing('x'));
  put(store, thing('x', 'a', 'new'), first);
  const result = store.commit([
    { type: 'put', collection: THINGS, object: thing('y'), expected: undefined },
    { type: 'remove', collection: THINGS, expected: first },
  ]);
  assert.equal(result, undefined);
  assert.equal(store.revision, 2);
  assert.equal(store.get(THINGS, 'a', 'y'), undefined);
});

test('a change that the journal cannot write is not applied, and causes no event', () => {
  class FullJournal extends MemoryJournal {
    override append(): void {
      throw ApiError.internal('full');
    }
  }
  const store = new CollectionStore({ journal: new FullJournal() });
  store.onChange(() => assert.fail('nothing has changed'));
  assert.throws(() => put(store, thing('x')), /full/);
  assert.equal(store.revision, 0);
  assert.deepEqual(names(store.collection(THINGS).list()), []);
});

test('a change is in the journal before its event', () => {
  const told: string[] = [];
  const journal: Journal = new (class extends MemoryJournal {
    override append(entries: readonly JournalEntry[] = []): void {
      told.push(`written ${entries[0]?.revision}`);
    }
  })();
  const store = new CollectionStore({ journal });
  store.onChange((_, { revision }) => told.push(`told ${revision}`));
  put(store, thing('x'));
  assert.deepEqual(told, ['written 1', 'told 1']);
});

test('objects are in the order of namespace/name, as etcd has them', () => {
  const store = new CollectionStore({ journal: new MemoryJournal() });
  for (const [namespace, name] of [
    ['a', 'y'],
    ['a-b', 'x'],
    ['a', 'x'],
    ['b', 'w'],
  ] as const) {
    put(store, thing(name, namespace));
  }
  assert.deepEqual(
    [...store.collection(THINGS).list()].map(({ metadata }) => `${metadata.namespace}/${metadata.name}`),
    ['a-b/x', 'a/x', 'a/y', 'b/w'],
  );
});

test('a collection is known as it was, as long as its changes are', () => {
  const store = new CollectionStore({ journal: new MemoryJournal(), historySize: 4 });
  const x = put(store, thing('x'));
  put(store, thing('y'));
  store.commit([{ type: 'remove', collection: THINGS, expected: x }]);
  const z = put(store, thing('z', 'b'));
  put(store, thing('z', 'b', 'new'), z);
  const collection = store.collection(THINGS);
  assert.deepEqual(names(collection.listAt(2)), ['x', 'y']);
  assert.deepEqual(names(collection.listAt(3)), ['y']);
  assert.deepEqual(collection.listAt(4, 'b'), [z]);
  for (let count = 0; count < 8; count++) {
    put(store, thing(`more-${count}`));
  }
  assert.equal(collection.listAt(2), undefined);
  assert.equal(collection.log.positionAfter(2), undefined);
});

test('positions in the log go on when old changes are dropped', () => {
  const store = new CollectionStore({ journal: new MemoryJournal(), historySize: 2 });
  const { log } = store.collection(THINGS);
  const position = log.end;
  for (let count = 0; count < 5; count++) {
    put(store, thing(`x-${count}`));
  }
  assert.equal(log.at(position), 'lost');
  const after = log.positionAfter(4);
  assert.ok(after !== undefined);
  const change = log.at(after);
  assert.ok(change !== undefined && change !== 'lost');
  assert.equal(change.revision, 5);
  assert.equal(log.at(after + 1), undefined);
});

test('an object that is too large is refused with etcd’s message', () => {
  const store = new CollectionStore({ journal: new MemoryJournal() });
  assert.throws(() => put(store, thing('x', 'a', 'é'.repeat(MAX_OBJECT_BYTES / 2))), {
    name: 'ApiError',
    message: 'etcdserver: request is too large',
  });
  assert.throws(() => put(store, thing('x', 'a', 'x'.repeat(MAX_OBJECT_BYTES * 2))), { code: 413 });
  put(store, thing('x', 'a', 'e'.repeat(MAX_OBJECT_BYTES / 2)));
});

test('`__proto__` is a field like any other', () => {
  const store = new CollectionStore({ journal: new MemoryJournal() });
  const object = JSON.parse('{"apiVersion":"v1","kind":"Thing","metadata":{"name":"__proto__","namespace":"a"}}');
  put(store, object);
  assert.equal(store.get(THINGS, 'a', '__proto__')?.kind, 'Thing');
  assert.equal(store.get(THINGS, 'a', 'constructor'), undefined);
});

test('large objects are remembered for fewer changes, and the newest always', () => {
  const store = new CollectionStore({ journal: new MemoryJournal() });
  const { log } = store.collection(THINGS);
  const value = 'x'.repeat(1024 ** 2);
  for (let count = 0; count < 100; count++) {
    put(store, thing('x', 'a', value), store.get(THINGS, 'a', 'x'));
  }
  assert.ok(log.floor >= 100 - (MAX_HISTORY_SIZE / value.length) * 2, 'at most twice the limit is kept');
  assert.ok(log.floor <= 100 - MAX_HISTORY_SIZE / value.length + 1, 'at least the limit is kept');
  assert.notEqual(log.positionAfter(99), undefined);
});
