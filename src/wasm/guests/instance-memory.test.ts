import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { InstanceMemory, MAX_GARBAGE_BYTES } from './instance-memory.ts';

/** A memory of 100 bytes, of which one owner may have 60, with modules whose instances can be looked at. */
function setUp(): {
  memory: InstanceMemory;
  rest: (key: string, owner: string, bytes: number) => void;
  resting: () => string[];
} {
  const memory = new InstanceMemory({ bytes: 100, bytesOf: () => 60 });
  const shares = new Map<string, ReturnType<InstanceMemory['share']>>();
  const resting = new Set<string>();
  return {
    memory,
    rest: (key, owner, bytes) => {
      const share = shares.get(key) ?? memory.share(key, owner);
      shares.set(key, share);
      resting.add(key);
      share.rest(bytes, () => resting.delete(key));
    },
    resting: () => [...resting].toSorted(),
  };
}

describe('the memory of instances', () => {
  it('drops the instances that were not used for the longest time', () => {
    const { memory, rest, resting } = setUp();
    rest('a', 'one', 30);
    rest('b', 'two', 30);
    rest('c', 'three', 30);
    rest('a', 'one', 30);
    rest('d', 'four', 30);
    assert.deepEqual(resting(), ['a', 'c', 'd']);
    assert.equal(memory.bytes, 90);
  });

  it('drops first the instances of the owner that has more than its part', () => {
    const { rest, resting } = setUp();
    rest('neighbour', 'one', 20);
    rest('a', 'two', 40);
    rest('b', 'two', 40);
    assert.deepEqual(resting(), ['b', 'neighbour']);
  });

  it('keeps no instance that alone is too large', () => {
    const { memory, rest, resting } = setUp();
    rest('neighbour', 'one', 20);
    rest('large', 'two', 61);
    assert.deepEqual(resting(), ['neighbour']);
    assert.equal(memory.bytes, 20);
  });

  it('counts an instance that grows, or is dropped by its sandbox, once', () => {
    const { memory, rest } = setUp();
    rest('a', 'one', 10);
    rest('a', 'one', 20);
    assert.equal(memory.bytes, 20);
    const share = memory.share('b', 'one');
    share.rest(5, () => assert.fail('it has dropped itself'));
    share.dropped(5);
    share.dropped(5);
    assert.equal(memory.bytes, 20);
  });

  it('forgets modules, and ignores what their sandboxes report later', () => {
    const { memory, resting } = setUp();
    const share = memory.share('a', 'one');
    share.rest(50, () => undefined);
    assert.equal(memory.lastBytes('a'), 50);
    memory.forget('a');
    assert.equal(memory.bytes, 0);
    share.rest(50, () => undefined);
    assert.equal(memory.bytes, 0);
    assert.equal(memory.lastBytes('a'), undefined);
    assert.deepEqual(resting(), []);
  });

  it('collects the garbage of dropped instances, also when no other one starts', async () => {
    const share = new InstanceMemory({ bytes: 1, bytesOf: () => 1 }).share('a', '');
    const garbage = new WeakRef({});
    // A reference that was just made or read is kept until the end of the turn.
    await turn();
    share.dropped(MAX_GARBAGE_BYTES - 1);
    await turn();
    share.dropped(1);
    await turn();
    await turn();
    assert.equal(garbage.deref(), undefined);
  });

  it('collects their garbage at once where that is asked for, if it is much', async () => {
    const memory = new InstanceMemory({ bytes: 1, bytesOf: () => 1 });
    const share = memory.share('a', '');
    const garbage = new WeakRef({});
    await turn();
    share.dropped(MAX_GARBAGE_BYTES - 1);
    memory.collect();
    share.dropped(1);
    memory.collect();
    assert.equal(garbage.deref(), undefined);
  });

  it('drops instances when less memory is left for them', () => {
    const { memory, rest, resting } = setUp();
    rest('a', 'one', 40);
    rest('b', 'two', 40);
    memory.limit(50);
    assert.deepEqual(resting(), ['b']);
  });
});
