import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ClockOffset, MAX_CLOCK_OFFSET_MS } from './clock-offset.ts';

const WINDOW_MS = 5_000;
const NOW = Date.parse('2026-01-01T00:00:00Z');

/** Notes messages of one window, each held up for some time. Returns whether something changed. */
function noteAll(offset: ClockOffset, start: number, aheadMs: number, heldMs: readonly number[]): boolean {
  const step = WINDOW_MS / (heldMs.length - 1);
  return heldMs
    .map((held, index) => offset.note(NOW + aheadMs - held, NOW, start + index * step))
    .some((isChanged) => isChanged);
}

describe('the offset of a clock', () => {
  it('is not known before a while, and zero where clocks agree', () => {
    const offset = new ClockOffset(WINDOW_MS);
    assert.equal(offset.note(NOW, NOW, 1), false);
    assert.equal(offset.ms, undefined);
    assert.equal(noteAll(offset, 2, MAX_CLOCK_OFFSET_MS - 100, [0, 0, 0]), false);
    assert.equal(offset.ms, 0);
  });

  for (const [aheadMs, expected] of [
    [61_300, 61_000],
    [-59_700, -60_000],
  ] as const) {
    it(`is told once when clocks differ by ${aheadMs} ms, and once when they agree again`, () => {
      const offset = new ClockOffset(WINDOW_MS);
      assert.equal(noteAll(offset, 0, aheadMs, [0, 900, 10, 300]), true);
      assert.equal(offset.ms, expected);
      assert.equal(noteAll(offset, 5_001, aheadMs + 1_500, [5, 900, 10, 300]), false, 'jitter');
      assert.equal(noteAll(offset, 10_002, aheadMs + 3_600_000, [5, 5, 10, 300]), true);
      assert.equal(noteAll(offset, 15_003, 0, [5, 5, 10, 300]), true);
      assert.equal(offset.ms, 0);
    });
  }

  it('is not taken from messages that were held up by a busy process', () => {
    const offset = new ClockOffset(WINDOW_MS);
    assert.equal(noteAll(offset, 0, 0, [4_000, 3_000, 20, 2_500]), false);
    assert.equal(offset.ms, 0);
  });
});
