import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { WasmError } from '../../binary/errors.ts';
import { opaBuiltins } from './builtin-table.ts';
import { BuiltinError } from './errors.ts';
import { RegoNumber } from './number.ts';
import { RegoObject } from './value.ts';
import type { RegoValue } from './value.ts';

/** Of a review with a timeout of a second. */
const FUEL = 2e9;

/** What a call charges for, up to the limit at which it ends. */
function chargeOf(name: string, ...operands: readonly RegoValue[]): number {
  let fuel = 0;
  const charge = (more: number): void => {
    fuel += more;
    if (fuel > FUEL) {
      throw new WasmError('out-of-fuel', name);
    }
  };
  try {
    opaBuiltins.get(name)?.(operands, {
      nowNs: 0n,
      randomResults: new Map(),
      patterns: new Map(),
      charge,
      log: () => {},
    });
  } catch (error) {
    // A call with invalid operands is undefined, and has charged for reading them.
    assert.ok(error instanceof WasmError || error instanceof BuiltinError, String(error));
    return Math.min(fuel, FUEL);
  }
  return fuel;
}

const ones = (count: number): readonly RegoValue[] => Array.from({ length: count }, () => new RegoNumber('1'));
const nearly = (end: string): readonly string[] =>
  Array.from({ length: 1000 }, (_, i) => `${'a'.repeat(1000)}${end}${i}`);

describe('a builtin charges for', () => {
  test('an indent that is longer than the value, before it is written', () => {
    const options = new RegoObject([['indent', 'a'.repeat(1_000_000)]]);
    assert.ok(chargeOf('json.marshal_with_options', ones(100_000), options) >= 40_000_000);
  });

  test('affixes that nearly match', () => {
    assert.equal(chargeOf('strings.any_prefix_match', nearly('b'), nearly('c')), FUEL);
    assert.equal(chargeOf('strings.any_suffix_match', nearly('b'), nearly('c')), FUEL);
  });

  test('each pair of a query, and for none where it has none', () => {
    assert.ok(chargeOf('urlquery.decode_object', '&a'.repeat(100_000)) >= 100_000 * 1000);
    assert.equal(chargeOf('urlquery.decode_object', '&'.repeat(100_000)), 0);
  });

  test('each character of a layout', () => {
    assert.ok(chargeOf('time.parse_ns', 'Jan'.repeat(30_000), 'Jan'.repeat(30_000)) >= 90_000 * 1000);
  });

  test('the parts of a longer array, which it compares as numbers', { timeout: 60_000 }, () => {
    const same = Array.from({ length: 2000 }, () => 'a'.repeat(2000));
    assert.ok(chargeOf('object.subset', same, [...same.slice(1000), 'b']) >= 2000 * 1000);
  });
});
