import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { fromBinary, goQuote, goQuoteBytes, toBinary } from './go-quote.ts';

test('texts are quoted with escapes for what is not printed', () => {
  assert.equal(goQuote('a"\\\n\u0000\u200b\u{e0001}é😀'), '"a\\"\\\\\\n\\x00\\u200b\\U000e0001é😀"');
});

test('bytes that are no UTF-8 are shown one by one', () => {
  assert.equal(goQuoteBytes('\u00c3\u00a9\u00ff\u00c3'), '"é\\xff\\xc3"');
  assert.equal(goQuoteBytes(toBinary('\ufffd')), '"\ufffd"');
});

test('texts and their bytes are quoted the same', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const wellFormed = text.toWellFormed();
      assert.equal(goQuoteBytes(toBinary(wellFormed)), goQuote(wellFormed));
      assert.equal(fromBinary(toBinary(wellFormed)), wellFormed);
      assert.equal(goQuoteBytes(`${toBinary(wellFormed)}\u00ff`), `${goQuote(wellFormed).slice(0, -1)}\\xff"`);
    }),
    { numRuns: 30 },
  );
});
