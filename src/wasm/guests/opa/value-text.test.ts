import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { BuiltinError } from './errors.ts';
import { RegoNumber } from './number.ts';
import { compareValues, RegoObject, RegoSet, valuesEqual } from './value.ts';
import type { RegoValue } from './value.ts';
import { parseJsonText, parseRegoText, regoText } from './value-text.ts';

const { value: anyValue } = fc.letrec<{ value: RegoValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, false),
    fc.string({ unit: 'binary' }),
    fc.bigInt().map((number) => RegoNumber.of(number)),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => RegoNumber.of(number)),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.array(tie('value'), { maxLength: 4 }).map((items) => new RegoSet(items)),
    fc.array(fc.tuple(tie('value'), tie('value')), { maxLength: 4 }).map((entries) => new RegoObject(entries)),
  ),
}));

test('every value is equal after it was printed and parsed', () => {
  fc.assert(
    fc.property(anyValue, (value) => {
      assert.ok(valuesEqual(parseRegoText(regoText(value)), value));
    }),
  );
});

test('strict JSON is the JSON that JSON.parse accepts', () => {
  const anyText = fc.oneof(
    fc.json(),
    fc.string({ unit: fc.constantFrom(...'{}[]",:\\u0041 -+.eE1tnrufalse\n\u0001'.split('')) }),
  );
  fc.assert(
    fc.property(anyText, (text) => {
      let isJson = true;
      try {
        JSON.parse(text);
      } catch {
        isJson = false;
      }
      if (isJson) {
        assert.ok(valuesEqual(parseJsonText(text), parseRegoText(JSON.stringify(JSON.parse(text)))) || /\d/.test(text));
      } else {
        assert.throws(() => parseJsonText(text), BuiltinError);
      }
    }),
    { numRuns: 1000 },
  );
});

test('values have a total order, in which only equal values compare as 0', () => {
  fc.assert(
    fc.property(anyValue, anyValue, (a, b) => {
      assert.ok(Math.sign(compareValues(a, b)) + Math.sign(compareValues(b, a)) === 0);
      assert.equal(compareValues(a, b) === 0, valuesEqual(a, b));
    }),
  );
});

test('numbers are equal by value and keep their text', () => {
  for (const [a, b] of [
    ['1', '1.0'],
    ['100', '1e2'],
    ['0', '-0.00'],
    ['0.001', '1E-3'],
  ]) {
    assert.ok(valuesEqual(new RegoNumber(a ?? ''), new RegoNumber(b ?? '')), `${a} and ${b}`);
  }
  assert.equal(regoText(parseRegoText('{"a": 1.50, 2: [1e2]}')), '{2: [1e2], "a": 1.50}');
});
