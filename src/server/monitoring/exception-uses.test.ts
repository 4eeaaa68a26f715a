import assert from 'node:assert/strict';
import { describe, it, mock } from 'node:test';
import { ExceptionUses, MAX_COUNTED_EXCEPTIONS } from './exception-uses.ts';

const START = Date.parse('2026-01-01T00:00:00Z');
const at = (ms: number): string => new Date(START + ms).toISOString();

describe('ExceptionUses', () => {
  it('counts requests by exception, since the first one', () => {
    let now = START;
    const uses = new ExceptionUses({ now: () => now });
    uses.record(['a', 'b']);
    now += 5;
    uses.record(['a']);
    assert.deepEqual(
      [...uses.uses()],
      [
        { uid: 'b', since: at(0), count: 1, last: at(0) },
        { uid: 'a', since: at(0), count: 2, last: at(5) },
      ],
    );
    assert.deepEqual([uses.use('a')?.count, uses.use('c')], [2, undefined]);
    uses.flush();
  });

  it('reports the uses of an interval together, and the last ones before the end', () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    const reported: (readonly string[])[] = [];
    const uses = new ExceptionUses({ reportMs: 60_000 });
    const unsubscribe = uses.subscribe((uids) => reported.push(uids));
    uses.record(['a']);
    uses.record(['a', 'b']);
    mock.timers.tick(500);
    assert.deepEqual(reported, [['a', 'b']]);
    uses.record(['b']);
    mock.timers.tick(1_000);
    assert.equal(reported.length, 1);
    uses.flush();
    uses.flush();
    assert.deepEqual(reported.slice(1), [['b']]);
    unsubscribe();
    uses.record(['b']);
    uses.flush();
    assert.equal(reported.length, 2);
    mock.timers.reset();
  });

  it('forgets those whose last use is the oldest when there are too many', () => {
    const uses = new ExceptionUses();
    uses.record(Array.from({ length: MAX_COUNTED_EXCEPTIONS }, (_, index) => `uid-${index}`));
    uses.record(['uid-0']);
    uses.record(['one more']);
    assert.equal([...uses.uses()].length, MAX_COUNTED_EXCEPTIONS);
    assert.deepEqual([uses.use('uid-0')?.count, uses.use('uid-1'), uses.use('one more')?.count], [2, undefined, 1]);
    uses.flush();
  });
});
