import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { fromBinary, quote, quoteBytes, quoteRune, quoteToAscii, toBinary } from './quote.ts';

test('strings are quoted with escapes for characters that do not print', () => {
  assert.equal(quote('a"\\\n\u0000\u200b\u{e0001}é😀'), '"a\\"\\\\\\n\\x00\\u200b\\U000e0001é😀"');
  assert.equal(quoteToAscii('"é😀'), '"\\"\\u00e9\\U0001f600"');
});

test('single characters are quoted with single quotes, of which only their own kind is escaped', () => {
  assert.deepEqual(
    ["'", '"', '\\', 'é'].map((rune) => quoteRune(rune)),
    ["'\\''", `'"'`, "'\\\\'", "'é'"],
  );
  assert.equal(quoteRune('é', true), "'\\u00e9'");
});

test('bytes that are not UTF-8 are escaped one by one', () => {
  assert.equal(quoteBytes('\u00c3\u00a9\u00ff\u00c3'), '"é\\xff\\xc3"');
  assert.equal(quoteBytes(toBinary('\ufffd')), '"\ufffd"');
});

test('a string and its bytes are quoted the same', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const wellFormed = text.toWellFormed();
      assert.equal(quoteBytes(toBinary(wellFormed)), quote(wellFormed));
      assert.equal(fromBinary(toBinary(wellFormed)), wellFormed);
      assert.equal(quoteBytes(`${toBinary(wellFormed)}\u00ff`), `${quote(wellFormed).slice(0, -1)}\\xff"`);
    }),
    { numRuns: 30 },
  );
});
