import assert from 'node:assert/strict';
import { it } from 'node:test';
import { MAX_SLOW_OWNERS, SlowOwners } from './slow-owners.ts';

it('slow owners are bounded: the one that was slow first makes room', () => {
  const owners = new SlowOwners();
  owners.add('first');
  owners.add('again');
  for (let index = 2; index < MAX_SLOW_OWNERS; index += 1) {
    owners.add(`o${index}`);
  }
  owners.add('first');
  owners.add('one more');
  assert.equal(owners.size, MAX_SLOW_OWNERS);
  assert.deepEqual(
    ['first', 'again', 'one more'].map((owner) => owners.has(owner)),
    [true, false, true],
  );
});

it('an owner that becomes slow for a short time stays slow for the longer one', (context) => {
  let now = 0;
  context.mock.method(performance, 'now', () => now);
  const owners = new SlowOwners();
  owners.add('a', 60_000);
  owners.add('a', 1_000);
  owners.add('b', 1_000);
  now = 2_000;
  assert.deepEqual([owners.has('a'), owners.has('b')], [true, false]);
  assert.deepEqual(
    owners.those(() => true),
    ['a'],
  );
});
