import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { EvaluationFailure } from '../model/value.ts';
import { parseUrl, requestUriProblem, Url } from './url-value.ts';

function url(text: string): Url {
  const parsed = parseUrl(text);
  assert.ok(parsed instanceof Url, text);
  return parsed;
}

describe('URLs', () => {
  test('are parsed or rejected for any text, and survive printing and parsing', () => {
    const texts = fc.string({ unit: fc.constantFrom(...Array.from('ab:/?#[]@%20&=;.+é\u0000 ')), maxLength: 24 });
    fc.assert(
      fc.property(texts, (text) => {
        const read = parseUrl(`http://${text}`);
        assert.ok(read instanceof Url || read instanceof EvaluationFailure);
        if (read instanceof Url) {
          assert.equal(url(read.toString()).toString(), read.toString());
        }
        assert.equal(typeof requestUriProblem(text), requestUriProblem(text) === undefined ? 'undefined' : 'string');
      }),
      { numRuns: 500 },
    );
  });

  test('have query parameters of any name as own properties', () => {
    const query = url('http://h/?__proto__=1&constructor=2&a=3').query;
    assert.deepEqual(Object.entries(query as object), [
      ['__proto__', ['1']],
      ['constructor', ['2']],
      ['a', ['3']],
    ]);
  });

  test('have no query when it exceeds the parameter limit of API servers', () => {
    assert.equal(Object.keys(url(`http://h/?${'a&'.repeat(9_999)}b`).query as object).length, 2);
    assert.equal(Object.keys(url(`http://h/?${'a&'.repeat(10_000)}b`).query as object).length, 0);
  });

  test('replace bytes that are not UTF-8', () => {
    assert.deepEqual(url('http://h/?a=%ff').query, { a: ['\ufffd'] });
    assert.equal(url('http://h/%ff').escapedPath, '/%ff');
  });
});
