import assert from 'node:assert/strict';
import { it } from 'node:test';
import { isBase64 } from './base64.ts';

it('base64 is told from other texts, with its padding', () => {
  for (const bytes of ['', 'a', 'ab', 'abc', 'abcd']) {
    assert.ok(isBase64(Buffer.from(bytes).toString('base64')), bytes);
  }
  for (const text of ['a', 'ab', 'abc', 'a===', '====', 'ab=c', 'abc=abcd', 'ab-_', 'abc\n', '=abc']) {
    assert.ok(!isBase64(text), text);
  }
});

it('texts of any length are told apart', () => {
  const long = 'a'.repeat(16_000_000);
  assert.ok(isBase64(long));
  assert.ok(!isBase64(`${long}!!!!`));
});
