import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { NS_PER_SECOND } from './civil-time.ts';
import { parseDuration } from './duration.ts';
import { parseRfc3339 } from './rfc3339.ts';
import { formatTime, parseTime, RFC3339_NANO } from './time-layout.ts';
import { civilOf } from './civil-time.ts';
import { TimeZone } from './time-zone.ts';

test('durations are read as time.ParseDuration reads them', () => {
  const durations: readonly (readonly [string, bigint | undefined])[] = [
    ['1h30m', 5_400_000_000_000n],
    ['-1.5s', -1_500_000_000n],
    ['+0', 0n],
    ['1.s', 1_000_000_000n],
    ['.5s', 500_000_000n],
    ['0.9223372036854775808h', 3_320_413_933_267n],
    ['00000000000000000000000000001s', 1_000_000_000n],
    ['-9223372036854775808ns', -(2n ** 63n)],
    ['9223372036854775808ns', undefined],
    ['', undefined],
    ['.s', undefined],
    ['1x', undefined],
    ['1d', undefined],
    [`${'9'.repeat(100_000)}s`, undefined],
  ];
  for (const [text, nanoseconds] of durations) {
    assert.equal(parseDuration(text), nanoseconds, text);
  }
});

describe('RFC 3339', () => {
  test('is read as Go reads it', () => {
    const second = Date.UTC(2020, 0, 1, 1) / 1000;
    assert.deepEqual(parseRfc3339('2020-01-01T1:00:00,5Z'), {
      seconds: second,
      nanoseconds: 500_000_000,
      offsetSeconds: 0,
    });
    assert.equal(parseRfc3339('2020-01-01T12:00:00+10:60')?.seconds, second);
    for (const text of [
      '2020-02-30T01:00:00Z',
      '2020-01-01T01:00:60Z',
      '2020-01-01T24:00:00Z',
      '2020-01-01t01:00:00z',
    ]) {
      assert.equal(parseRfc3339(text), undefined, text);
    }
  });

  test('gives the same as the layout', () => {
    const part = fc.constantFrom('00', '01', '2', '12', '23', '24', '29', '30', '31', '59', '60', '61');
    const zone = fc.oneof(
      fc.constantFrom('Z', 'z', ''),
      fc.tuple(part, part).map(([hour, minute]) => `-${hour}:${minute}`),
    );
    const text = fc
      .tuple(
        fc.constantFrom('0000', '1900', '2024', '9999'),
        part,
        part,
        part,
        part,
        part,
        fc.constantFrom('', '.', '.1', ',1234567891'),
        zone,
      )
      .map(
        ([year, month, day, hour, minute, second, fraction, offset]) =>
          `${year}-${month}-${day}T${hour}:${minute}:${second}${fraction}${offset}`,
      );
    fc.assert(
      fc.property(text, (timestamp) => {
        const time = parseRfc3339(timestamp);
        const nanoseconds =
          time === undefined ? undefined : BigInt(time.seconds) * NS_PER_SECOND + BigInt(time.nanoseconds);
        assert.equal(nanoseconds, parseTime(timestamp, RFC3339_NANO));
      }),
      { numRuns: 2000 },
    );
  });
});

test('times are formatted by layouts', () => {
  const zone = TimeZone.load('Asia/Kolkata');
  assert.ok(zone !== undefined);
  const seconds = Date.UTC(2024, 1, 29, 20, 5, 9) / 1000;
  const offsetSeconds = zone.offsetAt(seconds);
  const time = {
    ...civilOf(seconds + offsetSeconds, 120_000_000),
    offsetSeconds,
    zoneName: zone.abbreviationAt(seconds),
  };
  assert.equal(
    formatTime(time, 'Monday, 02-Jan-06 3:04:05.00 pm MST (002)'),
    'Friday, 01-Mar-24 1:35:09.12 am IST (061)',
  );
  assert.equal(formatTime(time, RFC3339_NANO), '2024-03-01T01:35:09.12+05:30');
});

test('zones are found by the names of the IANA database only', () => {
  for (const name of ['', 'UTC', 'Local']) {
    assert.equal(TimeZone.load(name), TimeZone.UTC);
  }
  for (const name of ['+02:00', 'Nowhere/At all', '../etc/passwd']) {
    assert.equal(TimeZone.load(name), undefined, name);
  }
  // Local mean time, before zones were introduced.
  assert.equal(TimeZone.load('America/New_York')?.offsetAt(Date.UTC(1850, 0, 1) / 1000), -(4 * 3600 + 56 * 60 + 2));
});
