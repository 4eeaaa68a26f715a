import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { CelDouble } from '../model/value.ts';
import { parseCelJson } from './json.ts';

describe('parsing JSON', () => {
  it('returns the result of JSON.parse when all numbers are plain', () => {
    const text = '{"a": [1, -2, 0.5, "1.0 and 12345678901234567890", {"b": null}], "c\\\\\\"1.0": true}';
    assert.deepEqual(parseCelJson(text), JSON.parse(text));
  });

  it('keeps integers beyond 2^53', () => {
    assert.equal(parseCelJson('9007199254740993'), 9007199254740993n);
    assert.deepEqual(parseCelJson('{"a":[-9223372036854775808]}'), { a: [-9223372036854775808n] });
  });

  it('converts integers beyond 64 bits to doubles', () => {
    assert.deepEqual(parseCelJson('9223372036854775808'), new CelDouble(2 ** 63));
    assert.deepEqual(parseCelJson(`1${'0'.repeat(30)}`), new CelDouble(1e30));
  });

  it('keeps numbers in double notation as doubles', () => {
    assert.deepEqual(parseCelJson('[1.0, 1e3, 2E-0, -0.0, 1.5]'), [
      new CelDouble(1),
      new CelDouble(1000),
      new CelDouble(2),
      new CelDouble(-0),
      1.5,
    ]);
  });

  it('parses minus zero as the int 0', () => {
    assert.ok(Object.is(parseCelJson('-0'), 0));
  });

  it('keeps strings in documents with special numbers', () => {
    assert.deepEqual(parseCelJson('["\\\\", "\\"1.0", "\\u00e9", 1.0]'), ['\\', '"1.0', 'é', new CelDouble(1)]);
  });

  it('accepts __proto__ as an ordinary key', () => {
    const value = parseCelJson('{"__proto__": {"admin": 1.0}}') as object;
    assert.deepEqual(Object.keys(value), ['__proto__']);
    assert.equal(Object.getPrototypeOf(value), Object.prototype);
  });

  it('allocates no memory for absent indexes', () => {
    const text = `[1.0,${Array.from({ length: 1_650 }, () => '{"999":0,"2500":{"4294967294":1}}').join()}]`;
    const before = process.memoryUsage().heapUsed;
    const value = parseCelJson(text);
    assert.ok(process.memoryUsage().heapUsed - before < 25_000_000);
    assert.deepEqual((value as unknown[]).slice(1), (JSON.parse(text) as unknown[]).slice(1));
  });

  it('parses deeply nested documents', () => {
    const depth = 20_000;
    let value = parseCelJson(`${'['.repeat(depth)}1.0${']'.repeat(depth)}`);
    let levels = 0;
    while (Array.isArray(value)) {
      value = value[0];
      levels += 1;
    }
    assert.equal(levels, depth);
  });

  it('rejects invalid JSON', () => {
    assert.throws(() => parseCelJson('{"a": 1.0'), SyntaxError);
  });

  it('agrees with JSON.parse on documents without special numbers', () => {
    fc.assert(
      fc.property(fc.json({ noUnicodeString: false, maxDepth: 4 }), (text) => {
        const plain = JSON.parse(text) as unknown;
        const hasOnlyPlainNumbers = !/-0|[eE.]\d*|\d{16}/.test(text.replace(/"(?:[^"\\]|\\.)*"/g, ''));
        if (hasOnlyPlainNumbers) {
          assert.deepEqual(parseCelJson(text), plain);
        } else {
          assert.equal(JSON.stringify(unboxed(parseCelJson(text))), JSON.stringify(plain));
        }
      }),
    );
  });
});

/** The value with plain numbers. */
function unboxed(value: unknown): unknown {
  if (value instanceof CelDouble) {
    return value.value;
  }
  if (typeof value === 'bigint') {
    return Number(value);
  }
  if (Array.isArray(value)) {
    return value.map(unboxed);
  }
  return typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, unboxed(entry)]))
    : value;
}
