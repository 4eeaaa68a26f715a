import assert from 'node:assert/strict';
import { it } from 'node:test';
import { OwnerQueue } from './owner-queue.ts';

it('owners take turns, whoever has more', () => {
  const queue = new OwnerQueue<string>();
  for (const item of ['a1', 'a2', 'a3', 'b1', 'c1']) {
    queue.push(item.charAt(0), item);
  }
  const first = [queue.shift(), queue.shift()];
  queue.push('b', 'b2');
  assert.deepEqual([...first, queue.shift(), queue.shift(), queue.shift()], ['a1', 'b1', 'c1', 'a2', 'b2']);
  assert.equal(queue.length, 1);
  queue.push('d', 'd1');
  assert.deepEqual([queue.clear(), queue.length, queue.shift()], [['a3', 'd1'], 0, undefined]);
});
