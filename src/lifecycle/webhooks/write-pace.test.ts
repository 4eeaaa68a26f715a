import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { IDLE_MS, WritePace } from './write-pace.ts';

/** The times of writes for changes at the given times. Milliseconds. */
function writesOf(changes: readonly number[]): readonly number[] {
  const pace = new WritePace();
  const writes: number[] = [];
  let due = Infinity;
  const pass = (until: number): void => {
    while (due <= until) {
      const wait = pace.wait(due);
      if (wait === 0) {
        pace.recordWrite(due);
        writes.push(due);
        due = Infinity;
      } else {
        due += wait;
      }
    }
  };
  for (const at of changes) {
    pass(at);
    due = Math.min(due, at + pace.recordChange(at));
    pass(at);
  }
  pass(Number.MAX_SAFE_INTEGER);
  return writes;
}

function stream(count: number, everyMs: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => index * everyMs);
}

describe('the pace of writes', () => {
  it('delays no single change', () => {
    assert.deepEqual(writesOf([0, IDLE_MS, 2 * IDLE_MS]), [0, IDLE_MS, 2 * IDLE_MS]);
  });

  it('makes few writes for a thousand changes, however fast they come', () => {
    for (const everyMs of [0, 1, 5, 20, 50]) {
      const writes = writesOf(stream(1_000, everyMs));
      assert.ok(writes.length <= 7, `${writes.length} writes of changes every ${everyMs} ms`);
    }
    // Each is a write of both kinds of configurations: at most ten requests in twenty seconds.
    assert.ok(writesOf(stream(1_000, 20)).length <= 5);
  });

  it('makes few writes for a slow stream, however often it pauses', () => {
    for (const everyMs of [450, 500, 1_000, 2_500]) {
      const writes = writesOf(stream(Math.trunc(35_000 / everyMs), everyMs));
      assert.ok(writes.length <= 10, `${writes.length} writes of changes every ${everyMs} ms`);
    }
  });

  it('writes soon after a stream has ended', () => {
    const changes = stream(200, 20);
    const last = writesOf(changes).at(-1) ?? 0;
    const end = changes.at(-1) ?? 0;
    assert.ok(last > end && last - end <= 1_500, `${last - end} ms`);
  });

  it('bounds the delay of a write while changes do not end', () => {
    const writes = writesOf(stream(10_000, 30));
    const gaps = writes.map((at, index) => at - (writes[index - 1] ?? 0));
    assert.ok(Math.max(...gaps) <= 15_000 + 30, String(Math.max(...gaps)));
  });
});
