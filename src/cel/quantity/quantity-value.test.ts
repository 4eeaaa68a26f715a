import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { EvaluationFailure } from '../model/value.ts';
import { MAX_QUANTITY_DIGITS, parseQuantity, Quantity } from './quantity-value.ts';

function quantity(text: string): Quantity {
  const parsed = parseQuantity(text);
  assert.ok(parsed instanceof Quantity, text);
  return parsed;
}

const amounts = fc
  .tuple(fc.bigInt(-(10n ** 20n), 10n ** 20n), fc.constantFrom('', 'm', 'u', 'k', 'M', 'Gi', 'Ki', 'e3', 'E-2'))
  .map(([number, suffix]) => `${number}${suffix}`);

describe('quantities', () => {
  test('are printed in the shortest form with the same value', () => {
    const texts = ['1000m', '1024Ki', '0.5', '1.5Gi', '100E-3', '0Ki', '2500u', '9999999999999999999'];
    assert.deepEqual(
      texts.map((text) => quantity(text).toString()),
      ['1', '1Mi', '500m', '1536Mi', '100E-3', '0', '2500u', '9999999999999999999'],
    );
  });

  test('are refused in time that their digits do not multiply', () => {
    // Some minutes each by an expression that tries each split of the digits.
    for (const text of [`${'1'.repeat(2_000_000)}x`, `${'0'.repeat(2_000_000)}x`, `1.${'1'.repeat(2_000_000)}\n`]) {
      assert.ok(parseQuantity(text) instanceof EvaluationFailure);
    }
  });

  test('survive printing and parsing', () => {
    fc.assert(
      fc.property(amounts, (text) => {
        const read = quantity(text);
        // Beyond the largest suffix, positive or negative, Kubernetes prints no suffix, and neither do we.
        fc.pre(read.compareTo(quantity('1000E')) < 0 && read.compareTo(quantity('-1000E')) > 0);
        assert.equal(quantity(read.toString()).compareTo(read), 0);
      }),
    );
  });

  test('can be added in any order and subtracted again', () => {
    fc.assert(
      fc.property(amounts, amounts, (one, other) => {
        const sum = quantity(one).add(quantity(other));
        assert.ok(sum instanceof Quantity && sum.equals(quantity(other).add(quantity(one)) as Quantity));
        const difference = sum.subtract(quantity(other));
        assert.ok(difference instanceof Quantity && difference.equals(quantity(one)));
      }),
    );
  });

  test('are parsed or rejected for any text', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(...Array.from('0123456789.+-eEKMGTPikmun ½')), maxLength: 30 }),
        (text) => {
          const read = parseQuantity(text);
          assert.ok(read instanceof Quantity || read instanceof EvaluationFailure);
          assert.equal(typeof (read instanceof Quantity ? read.toString() : read.message), 'string');
        },
      ),
    );
  });

  test('from a sum are rejected on the right of ==, as in API servers', () => {
    const sum = quantity('50k').add(quantity('20k'));
    assert.ok(sum instanceof Quantity);
    assert.equal(sum.compareEqual(quantity('70k')), true);
    assert.ok(quantity('70k').compareEqual(sum) instanceof EvaluationFailure);
    assert.equal(quantity('70k').equals(sum), true);
  });

  test('with huge exponents can be compared, but not printed', () => {
    const huge = quantity('1e2147483647');
    assert.equal(huge.compareTo(quantity('1e2147483646')), 1);
    assert.equal(quantity('-1e2147483647').compareTo(huge), -1);
    assert.equal(huge.toString(), '10e2147483646');
    assert.ok(huge.add(quantity('1')) instanceof EvaluationFailure);
    assert.equal(quantity('1e-2147483647').toString(), '1e-9');
  });

  test('with too many digits are rejected', () => {
    assert.ok(parseQuantity('9'.repeat(MAX_QUANTITY_DIGITS)) instanceof Quantity);
    assert.ok(parseQuantity('9'.repeat(MAX_QUANTITY_DIGITS + 1)) instanceof EvaluationFailure);
    assert.ok(parseQuantity(`12345678901234567890e${MAX_QUANTITY_DIGITS + 1}`) instanceof EvaluationFailure);
  });
});
