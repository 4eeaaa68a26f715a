import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CelDouble, CelMap, CelUint, EvaluationFailure } from '../model/value.ts';
import type { CelValue } from '../model/value.ts';
import { add, divide, modulo, multiply, negate, subtract } from './arithmetic.ts';
import { toDoubleValue, toIntValue, toText, toUintValue } from './conversion.ts';
import { equalValues } from './equality.ts';
import { findInMap, MapBuilder } from './map.ts';
import { compareValues } from './order.ts';
import { compilePattern } from './pattern.ts';
import { codePointCount } from '../model/code-point-count.ts';
import { sizeOf } from './size.ts';
import { CelDuration, CelTimestamp, formatDuration, formatTimestamp, parseDuration, parseTimestamp } from './time.ts';
import { TimeZones } from './time-zone.ts';

const MAX = 9223372036854775807n;
const MIN = -9223372036854775808n;

function failure(value: unknown): string {
  assert.ok(value instanceof EvaluationFailure);
  return value.message;
}

describe('arithmetic of ints', () => {
  it('is exact beyond 2^53', () => {
    assert.equal(add(Number.MAX_SAFE_INTEGER, 2), 9007199254740993n);
    assert.equal(subtract(9007199254740993n, 2), Number.MAX_SAFE_INTEGER);
    assert.equal(multiply(3037000500, 3), 9111001500);
    assert.equal(multiply(4294967296, 1073741824), 2n ** 62n);
  });

  it('fails beyond 64 bits', () => {
    for (const value of [
      add(MAX, 1),
      subtract(MIN, 1),
      multiply(MAX, 2),
      divide(MIN, -1),
      modulo(MIN, -1),
      negate(MIN),
    ]) {
      assert.equal(failure(value), 'integer overflow');
    }
    assert.equal(failure(divide(1, 0)), 'division by zero');
    assert.equal(failure(modulo(1, 0)), 'modulus by zero');
  });

  it('never returns minus zero', () => {
    for (const value of [multiply(0, -5), modulo(-4, 2), divide(-1, 2), negate(0)]) {
      assert.ok(Object.is(value, 0));
    }
  });

  it('distinguishes doubles from ints', () => {
    assert.deepEqual(add(0.5, 0.5), new CelDouble(1));
    assert.deepEqual(multiply(new CelDouble(0), -1.5), new CelDouble(-0));
    assert.equal(failure(add(1, 0.5)), 'no such overload');
    assert.equal(failure(add(null, 1)), 'no such overload: _+_');
  });
});

describe('equality', () => {
  it('compares numbers of all types by value', () => {
    const ones: readonly CelValue[] = [1, new CelUint(1n), new CelDouble(1)];
    for (const one of ones) {
      for (const other of ones) {
        assert.equal(equalValues(one, other), true);
      }
      assert.equal(equalValues(one, 1.5), false);
    }
    assert.equal(equalValues(Number.NaN, Number.NaN), false);
  });

  it('compares the contents of lists and maps', () => {
    assert.equal(equalValues([1, { a: [new CelUint(2n)] }], [new CelDouble(1), { a: [2] }]), true);
    assert.equal(equalValues({ a: 1 }, { b: 1 }), false);
    assert.equal(equalValues([Number.NaN], [Number.NaN]), false);
    assert.equal(equalValues(new Uint8Array([1]), new Uint8Array([1])), true);
    assert.equal(equalValues(mapOfNumbers(1, 'a'), mapOfNumbers(1, 'a')), true);
  });

  it('is not recursive', () => {
    const nest = (): CelValue => {
      let value: CelValue = 1;
      for (let level = 0; level < 100_000; level++) {
        value = level % 2 === 0 ? [value] : { v: value };
      }
      return value;
    };
    assert.equal(equalValues(nest(), nest()), true);
  });

  it('ignores inherited properties of objects', () => {
    assert.equal(equalValues({ constructor: 1 }, { toString: 1 }), false);
    assert.equal(findInMap({}, 'constructor'), undefined);
    assert.equal(findInMap({}, '__proto__'), undefined);
  });
});

function mapOfNumbers(key: number, value: string): CelValue {
  const builder = new MapBuilder();
  builder.set(key, value);
  const map = builder.build();
  assert.ok(map instanceof CelMap);
  return map;
}

describe('order', () => {
  it('orders strings by code points', () => {
    assert.equal(compareValues('\u{1F680}', '\uffff'), 1);
    assert.equal(compareValues('a', 'ab'), -1);
    assert.equal(compareValues('é', 'z'), 1);
  });

  it('does not order NaN', () => {
    assert.equal(failure(compareValues(Number.NaN, 1)), 'NaN values cannot be ordered');
  });
});

describe('sizes', () => {
  it('counts code points', () => {
    assert.equal(codePointCount('a🚀é'), 3);
    assert.equal(codePointCount('🚀'.repeat(50)), 50);
    assert.equal(codePointCount('\ud83d'), 1);
    assert.equal(sizeOf({ a: 1, b: 2 }), 2);
    assert.equal(sizeOf(5), 1);
  });
});

describe('conversions', () => {
  it('parses ints and doubles like Go', () => {
    assert.equal(toIntValue('+007'), 7);
    assert.equal(toIntValue('-9223372036854775808'), MIN);
    assert.match(failure(toIntValue('9223372036854775808')), /^type conversion error from 'string' to 'int'$/);
    assert.equal(failure(toIntValue(new CelDouble(2 ** 63))), 'integer overflow');
    assert.equal(toIntValue(-1.9), -1);
    assert.deepEqual(toUintValue(1.9), new CelUint(1n));
    assert.equal(failure(toUintValue(-1)), 'unsigned integer overflow');
    assert.deepEqual(toDoubleValue('0x1p3'), new CelDouble(8));
    assert.equal(toDoubleValue('-inf'), -Infinity);
    assert.match(failure(toDoubleValue('1e400')), /'double'$/);
  });

  it('takes less than quadratic time', () => {
    assert.ok(toIntValue('9'.repeat(1_000_000)) instanceof EvaluationFailure);
    assert.equal(toIntValue(`${'0'.repeat(1_000_000)}5`), 5);
  });

  it('rejects bytes that are not UTF-8', () => {
    assert.equal(toText(new TextEncoder().encode('é')), 'é');
    assert.equal(failure(toText(new Uint8Array([255]))), 'invalid UTF-8 in bytes, cannot convert to string');
  });
});

describe('times', () => {
  it('parses and prints durations', () => {
    assert.equal(parseDuration('1h30m')?.nanoseconds, 5_400_000_000_000n);
    assert.equal(parseDuration('-1.5s')?.nanoseconds, -1_500_000_000n);
    assert.equal(parseDuration('9223372036854775808ns'), undefined);
    assert.equal(parseDuration('1x'), undefined);
    assert.equal(parseDuration(`${'9'.repeat(100_000)}s`), undefined);
    assert.equal(formatDuration(new CelDuration(1n)), '0.000000001s');
  });

  it('parses and prints timestamps with their offset', () => {
    const time = parseTimestamp('2020-02-29T12:00:00.5+02:00');
    assert.ok(time instanceof CelTimestamp);
    assert.equal(time.seconds, Date.UTC(2020, 1, 29, 10) / 1000);
    assert.equal(formatTimestamp(time), '2020-02-29T12:00:00.5+02:00');
    assert.equal(parseTimestamp('2021-02-29T12:00:00Z'), undefined);
    assert.equal(parseTimestamp('2021-02-28 12:00:00Z'), undefined);
  });

  it('supports IANA time zones, including past offsets', () => {
    const zones = new TimeZones();
    const summer = new CelTimestamp(Date.UTC(2023, 6, 1) / 1000);
    const local = zones.localTime(summer, 'America/New_York');
    assert.ok(!(local instanceof EvaluationFailure));
    assert.deepEqual([local.month, local.day, local.hour], [6, 30, 20]);
    assert.equal(failure(zones.localTime(summer, 'Nowhere/At all')), 'unknown time zone Nowhere/At all');
  });
});

describe('regular expressions', () => {
  it('take time linear in the text', () => {
    const pattern = compilePattern('^(a+)+$');
    assert.ok(!(pattern instanceof EvaluationFailure));
    assert.equal(pattern.test(`${'a'.repeat(100_000)}!`), false);
  });

  it('report mistakes in a pattern', () => {
    assert.equal(failure(compilePattern('(')), 'error parsing regexp: missing closing ): `(`');
  });
});
