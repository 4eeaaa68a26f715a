import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { durationMs } from './duration.ts';

describe('durations', () => {
  it('are read as kubectl reads them', () => {
    assert.deepEqual(
      ['500ms', '30s', '1m30s', '1.5h', '1d', '0s'].map((text) => durationMs(text, '--timeout')),
      [500, 30_000, 90_000, 5_400_000, 86_400_000, 0],
    );
  });

  it('are refused when they are none, or longer than a timer can wait', () => {
    for (const text of ['', '5', '-1s', '1w', 's', '1s ', '25d', '597h', `${'9'.repeat(400)}s`]) {
      assert.throws(() => durationMs(text, '--timeout'), { exitCode: 2 }, text);
    }
  });
});
