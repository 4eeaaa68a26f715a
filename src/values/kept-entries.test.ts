import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { KeptEntries } from './kept-entries.ts';

describe('KeptEntries', () => {
  it('evicts what was set least recently, however often it was read', () => {
    const entries = new KeptEntries<string, number>({ maxEntries: 2 });
    entries.set('a', 1);
    entries.set('b', 2);
    entries.set('a', 3);
    assert.equal(entries.get('b'), 2);
    entries.set('c', 4);
    assert.deepEqual([...entries.keys()], ['a', 'c']);
    assert.equal(entries.get('a'), 3);
    assert.equal(entries.size, 2);
  });

  it('bounds the size of all values together', () => {
    const entries = new KeptEntries<string, string>({ maxSize: 5, sizeOf: ({ length }) => length });
    entries.set('a', '12');
    entries.set('b', '123');
    assert.deepEqual([...entries.keys()], ['a', 'b']);
    entries.set('c', '1');
    assert.deepEqual([...entries.keys()], ['b', 'c']);
  });

  it('evicts in the same order when entries went and came meanwhile', () => {
    const entries = new KeptEntries<string, number>({ maxEntries: 2 });
    for (const key of ['a', 'b', 'c']) {
      entries.set(key, 1);
    }
    entries.delete('b');
    entries.delete('c');
    for (const key of ['d', 'b', 'd', 'e']) {
      entries.set(key, 1);
    }
    assert.deepEqual([...entries.keys()], ['d', 'e']);
    entries.set('f', 1);
    assert.deepEqual([...entries.keys()], ['e', 'f']);
  });

  it('counts what is replaced or deleted no more', () => {
    const entries = new KeptEntries<string, string>({ maxSize: 5, sizeOf: ({ length }) => length });
    entries.set('a', '1234');
    entries.set('a', '12');
    entries.set('b', '123');
    entries.delete('b');
    entries.delete('b');
    entries.set('c', '123');
    assert.deepEqual([...entries.keys()], ['a', 'c']);
  });

  it('keeps nothing that is too large alone', () => {
    const entries = new KeptEntries<string, string>({ maxSize: 5, sizeOf: ({ length }) => length });
    entries.set('a', '123456');
    assert.equal(entries.get('a'), undefined);
    entries.set('b', '12345');
    assert.equal(entries.get('b'), '12345');
  });

  it('deletes the oldest up to the first that is needed', () => {
    const entries = new KeptEntries<string, number>({ maxSize: 10, sizeOf: () => 1 });
    for (const [key, value] of [
      ['a', 1],
      ['b', 2],
      ['c', 9],
      ['d', 1],
    ] as const) {
      entries.set(key, value);
    }
    entries.deleteOldest((value) => value < 5);
    assert.deepEqual([...entries.keys()], ['c', 'd']);
  });
});
