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

/** A turn of the event loop that takes `ms`, in which one caller wants to start. Returns its times of starts. */
async function longTurn(
  pace: TurnPace,
  clock: ManualClock,
  ms: number,
): Promise<{ seen: readonly number[]; endedAt: number }> {
  const seen = callers(pace, clock, 1);
  // In the turn of the caller.
  await Promise.resolve().then(() => clock.advance(ms));
  const endedAt = clock.now();
  await settle();
  return { seen, endedAt };
}

/** A pace without credit. */
async function spentPace(clock: ManualClock): Promise<TurnPace> {
  const pace = new TurnPace(clock);
  await longTurn(pace, clock, 10_000);
  await clock.pass(100, 1);
  return pace;
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

  it('lets long turns follow each other until they have taken half a second', async () => {
    const clock = new ManualClock();
    const pace = new TurnPace(clock);
    for (let index = 0; index < 5; index += 1) {
      const { seen, endedAt } = await longTurn(pace, clock, 100);
      assert.deepEqual(seen, [endedAt]);
    }
    const { seen } = await longTurn(pace, clock, 100);
    assert.deepEqual(seen, []);
    // A minute later, the credit is back.
    await clock.pass(60_000, 1_000);
    const later = await longTurn(pace, clock, 400);
    assert.deepEqual(later.seen, [later.endedAt]);
  });

  for (const { took, waits } of [
    { took: 4, waits: 0 },
    { took: 30, waits: 30 },
    { took: 5_000, waits: 100 },
  ]) {
    it(`waits ${waits} ms after a turn of ${took} ms, once the credit is spent`, async () => {
      const clock = new ManualClock();
      const pace = await spentPace(clock);
      const { seen, endedAt } = await longTurn(pace, clock, took);
      await clock.pass(waits, 1);
      assert.deepEqual(seen, [endedAt + waits]);
    });
  }

  it('ends a wait when the caller stops', async () => {
    const clock = new ManualClock();
    const stop = new AbortController();
    const next = (await spentPace(clock)).next(stop.signal);
    await Promise.resolve().then(() => clock.advance(50));
    await settle();
    assert.equal(clock.pending, 1);
    stop.abort();
    await next;
    assert.equal(clock.pending, 0);
  });
});
