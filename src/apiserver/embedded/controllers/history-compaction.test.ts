import assert from 'node:assert/strict';
import { it } from 'node:test';
import { MemoryJournal } from '../store/journal.ts';
import { CollectionStore } from '../store/collection-store.ts';
import { HistoryCompaction } from './history-compaction.ts';

const THINGS = 'things.example.com';

/** Creates and deletes an object. */
function churn(store: CollectionStore, name: string): void {
  const object = { apiVersion: 'example.com/v1', kind: 'Thing', metadata: { name, namespace: name } };
  const [expected] = store.commit([{ type: 'put', collection: THINGS, object, expected: undefined }]) ?? [];
  assert.ok(expected !== undefined);
  store.commit([{ type: 'remove', collection: THINGS, expected }]);
}

it('the history forgets what was there at the compaction before, and keeps what came after it', () => {
  const store = new CollectionStore({ journal: new MemoryJournal() });
  const compaction = new HistoryCompaction(store);
  const { log } = store.collection(THINGS);
  for (let index = 0; index < 100; index++) {
    churn(store, `a${index}`);
  }
  const early = store.revision;
  compaction.compact();
  assert.equal(log.length, 200, 'a watch may continue from there');
  churn(store, 'b');
  const late = store.revision;
  compaction.compact();
  assert.equal(log.length, 2);
  assert.deepEqual([log.positionAfter(early - 1), log.positionAfter(early)], [undefined, log.end - 2]);
  compaction.compact();
  assert.equal(log.length, 0);
  assert.deepEqual([log.floor, log.positionAfter(late)], [late, log.end]);
  churn(store, 'c');
  assert.equal(log.length, 2);
});
