import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { formatCheck } from './formats.ts';

describe('formats', () => {
  const cases: readonly (readonly [string, readonly string[], readonly string[]])[] = [
    ['date', ['2024-02-29'], ['2023-02-29', '24-01-01']],
    ['date-time', ['2024-02-29T23:59:59.5Z', '2024-01-01t00:00:00+01:00'], ['2024-01-01T24:00:00Z']],
    ['duration', ['1h30m', '3 days', '0'], ['x', '1']],
    ['email', ['a@b.c', 'A B <a@b>'], ['a', 'a@b@c']],
    ['hostname', ['a', 'a.example.com'], ['a_b', '-a', 'a.1']],
    ['ipv4', ['1.2.3.4', '01.2.3.4'], ['1.2.3', '::1']],
    ['ipv6', ['::1'], ['1.2.3.4', 'fe80::1%eth0']],
    ['cidr', ['10.0.0.0/8'], ['10.0.0.0/33', '10.0.0.0']],
    ['mac', ['00:00:5e:00:53:01'], ['00:00:5e:00:53']],
    ['uuid4', ['01234567-89ab-4def-8123-456789abcdef'], ['01234567-89ab-3def-8123-456789abcdef']],
    ['uri', ['https://a.b/c', '/a'], ['a', 'http://a b']],
    ['byte', ['YQ=='], ['YQ=', '']],
    ['isbn', ['0321751043', '978-0321751041'], ['0321751044']],
    ['creditcard', ['4111-1111-1111-1111'], ['4111111111111112']],
    ['rgbcolor', ['rgb(0,128,255)'], ['rgb(256,0,0)', 'rgb(01,0,0)']],
  ];
  for (const [format, right, wrong] of cases) {
    it(`recognise a ${format}`, () => {
      const isRight = formatCheck(format);
      assert.deepEqual(
        right.filter((text) => isRight?.(text) !== true),
        [],
      );
      assert.deepEqual(
        wrong.filter((text) => isRight?.(text) !== false),
        [],
      );
    });
  }

  it('that are unknown to API servers are not checked', () => {
    assert.equal(formatCheck('int32'), undefined);
    assert.equal(formatCheck(''), undefined);
    assert.equal(formatCheck('constructor'), undefined);
  });

  it('terminate on any text', () => {
    const long = fc
      .tuple(fc.constantFrom('a', '1', 'a.', '-', '@', '1 ', '" ', '('), fc.nat(5_000))
      .map(([part, times]) => part.repeat(times));
    fc.assert(
      fc.property(fc.oneof(fc.string(), long), (text) => {
        for (const [format] of cases) {
          formatCheck(format)?.(text);
        }
      }),
      { numRuns: 200 },
    );
  });
});
