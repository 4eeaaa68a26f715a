import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ManualClock, settle } from './testing/manual-clock.ts';
import { TurnPace } from './turn-pace.ts';

const { signal } = new AbortController();

/** Starts so many callers. Returns the times of those that may start. */
function callers(pace: TurnPace, clock: ManualClock, count: number): readonly number[] {
  const starts: number[] = [];
  for (let index = 0; index < count; index += 1) {
    void pace.next(signal).then(() => starts.push(clock.now()));
  }
  return starts;
}

describe('the pace of turns', () => {
  it('lets one caller start in each turn of the event loop', async () => {
    const clock = new ManualClock();
    const starts = callers(new TurnPace(clock), clock, 5);
    const counts: number[] = [];
    for (let index = 0; index < 3; index += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      counts.push(starts.length);
    }
    assert.deepEqual(
      counts.map((count, index) => count <= index + 1),
      [true, true, true],
    );
    await settle();
    assert.equal(starts.length, 5);
  });

  for (const { took, starts } of [
    { took: 4, starts: [4] },
    { took: 30, starts: [60] },
    { took: 5_000, starts: [5_100] },
  ]) {
    it(`starts at ${starts.join()} ms after a turn of ${took} ms`, async () => {
      const clock = new ManualClock();
      const seen = callers(new TurnPace(clock), clock, 1);
      // In the turn of the caller.
      await Promise.resolve().then(() => clock.advance(took));
      await clock.pass(starts[0] === took ? 0 : (starts[0] ?? 0) - took, 1);
      assert.deepEqual(seen, starts);
    });
  }

  it('ends a wait when the caller stops', async () => {
    const clock = new ManualClock();
    const stop = new AbortController();
    const next = new TurnPace(clock).next(stop.signal);
    await Promise.resolve().then(() => clock.advance(50));
    await settle();
    assert.equal(clock.pending, 1);
    stop.abort();
    await next;
    assert.equal(clock.pending, 0);
  });
});
