import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ageOf, humanDuration } from './age.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describe('durations', () => {
  it('have a second unit only for small counts', () => {
    const texts = [
      [0, '0s'],
      [119 * SECOND, '119s'],
      [120 * SECOND, '2m'],
      [125 * SECOND, '2m5s'],
      [10 * MINUTE + 5 * SECOND, '10m'],
      [179 * MINUTE, '179m'],
      [180 * MINUTE, '3h'],
      [200 * MINUTE, '3h20m'],
      [9 * HOUR, '9h'],
      [47 * HOUR, '47h'],
      [48 * HOUR, '2d'],
      [51 * HOUR, '2d3h'],
      [8 * DAY + HOUR, '8d'],
      [729 * DAY, '729d'],
      [730 * DAY, '2y'],
      [740 * DAY, '2y10d'],
      [3000 * DAY, '8y'],
    ] as const;
    assert.deepEqual(
      texts.map(([duration]) => humanDuration(duration)),
      texts.map(([, text]) => text),
    );
  });

  it('tolerate a clock that is one second ahead', () => {
    assert.deepEqual([humanDuration(-1 * SECOND), humanDuration(-2 * SECOND)], ['0s', '<invalid>']);
  });
});

describe('ages', () => {
  it('are unknown without a time', () => {
    assert.deepEqual(
      [undefined, null, 'yesterday'].map((time) => ageOf(time, 0)),
      ['<unknown>', '<unknown>', '<unknown>'],
    );
    assert.equal(ageOf('1970-01-01T00:00:00Z', 5 * SECOND), '5s');
  });
});
