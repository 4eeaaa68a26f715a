import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { UnreadEvents } from './unread-events.ts';

describe('unread events', () => {
  it('are given up oldest first, when they are too many together', () => {
    const unread = new UnreadEvents(100);
    const [first, second] = [unread.add(60), unread.add(40)];
    assert.equal(first.signal.aborted, false);
    const third = unread.add(30);
    assert.deepEqual(
      [first, second, third].map(({ signal }) => signal.aborted),
      [true, false, false],
    );
    unread.remove(second);
    assert.equal(unread.bytes, 30);
    assert.equal(unread.add(101).signal.aborted, true);
    assert.equal(third.signal.aborted, true);
  });

  it('are never more than the limit, and all freed', () => {
    const bytes = fc.integer({ min: 0, max: 150 });
    fc.assert(
      fc.property(fc.array(fc.tuple(bytes, fc.nat(20))), (changes) => {
        const unread = new UnreadEvents(100);
        const added: AbortController[] = [];
        for (const [size, removed] of changes) {
          added.push(unread.add(size));
          assert.ok(unread.bytes <= 100);
          const gone = added[removed];
          if (gone !== undefined) {
            unread.remove(gone);
          }
        }
        added.forEach((one) => unread.remove(one));
        assert.equal(unread.bytes, 0);
      }),
    );
  });
});
