import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { exactJson, parseExactJson, parseJson } from './json.ts';

/** Whether this runtime has the bug. When no supported version has it, `parseJson` may become JSON.parse. */
function misreadsEscapedKeys(): boolean {
  JSON.parse(String.raw`{"probe":[],"\\":0}`);
  const [, key] = Object.keys(JSON.parse(String.raw`{"probe":1,"\"":2}`) as object);
  return key !== '"';
}

/** Parses objects with the key behind `first`, so that V8 remembers that key for objects of this shape. */
function rememberKey(first: string, key: string): void {
  JSON.parse(JSON.stringify({ [first]: 1, [key]: 1 }));
}

/** A text of one object whose second key ends with a character that is written as an escape sequence. */
function escapedText(first: string, key: string): string {
  const code = key
    .charCodeAt(key.length - 1)
    .toString(16)
    .padStart(4, '0');
  return `{${JSON.stringify(first)}:1,"${JSON.stringify(key.slice(0, -1)).slice(1, -1)}\\u${code}":2}`;
}

describe('parseJson', () => {
  it('reads an escaped key right after a text whose key ends with a backslash', (test) => {
    test.diagnostic(`this runtime ${misreadsEscapedKeys() ? 'misreads' : 'reads'} escaped keys`);
    for (const [index, key] of ['ab<', 'ab"', 'ab/', 'ab\n', 'abé'].entries()) {
      const first = `first${index}`;
      rememberKey(first, 'ab\\');
      assert.deepEqual(Object.keys(parseJson(escapedText(first, key)) as object), [first, key]);
    }
  });

  it('reads any two keys right, whichever texts were parsed before', () => {
    const key = fc.string({ unit: fc.constantFrom('a', '\\', '"', '<', '\n', '/', 'é'), minLength: 1, maxLength: 3 });
    let run = 0;
    fc.assert(
      fc.property(key, key, (remembered, read) => {
        // Objects of a new shape, for which V8 remembers no other key.
        const first = `run${run++}`;
        rememberKey(first, remembered);
        assert.deepEqual(Object.keys(parseJson(JSON.stringify({ [first]: 1, [read]: 2 })) as object), [first, read]);
        assert.deepEqual(Object.keys(parseJson(escapedText(first, read)) as object), [first, read]);
      }),
    );
  });

  it('agrees with JSON.parse about everything else', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 4 }), (text) => {
        // An escaped key in front sends the whole text through the other parser.
        const [plain, escaped] = [`{"k":0,"v":${text}}`, `{"\\u006b":0,"v":${text}}`];
        assert.deepEqual(parseJson(escaped), JSON.parse(plain));
      }),
    );
  });

  it('keeps order, the last of two equal keys, __proto__ and numbers as JSON.parse does', () => {
    const text = String.raw`{"\u0062":-0,"a":1e400,"2":[1.50],"b":-1.5E-3,"__proto__":{"x":true},"c":{"\ud800":null}}`;
    const value = parseJson(text) as Record<string, unknown>;
    assert.deepEqual(Object.keys(value), ['2', 'b', 'a', '__proto__', 'c']);
    assert.deepEqual(value['b'], -0.0015);
    assert.deepEqual(value['a'], Infinity);
    assert.deepEqual(Object.keys(value['c'] as object), ['\ud800']);
    assert.equal(Object.getPrototypeOf(value), Object.prototype);
  });

  it('refuses what JSON.parse refuses, with its message', () => {
    for (const text of ['', '{"\\u0061":1', '{"a\\x":1}', '{"\\u0061":1}}', '"\\', '{"\\":1}']) {
      assert.throws(() => parseJson(text), SyntaxError, text);
    }
  });

  it('reads values nested to any depth beside an escaped key', () => {
    const depth = 20_000;
    let value = (parseJson(`{"\\u0061":${'['.repeat(depth)}1${']'.repeat(depth)}}`) as { a: unknown }).a;
    let levels = 0;
    for (; Array.isArray(value); levels++) {
      value = value[0];
    }
    assert.equal(levels, depth);
  });
});

describe('parseExactJson and exactJson', () => {
  it('keep integers of 64 bits, and round larger ones as Go does', () => {
    const text = '{"a":[9007199254740993,-9223372036854775808,18446744073709551615],"b":"12345678901234567890","c":1}';
    const value = parseExactJson(text);
    assert.deepEqual(value, {
      a: [9007199254740993n, -9223372036854775808n, 18446744073709551615n],
      b: '12345678901234567890',
      c: 1,
    });
    assert.equal(exactJson(value), text);
    assert.deepEqual(parseExactJson('[123456789012345678901234567890]'), [1.2345678901234568e29]);
  });

  it('are those of JSON for all other values', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        assert.equal(exactJson(value), text);
        assert.equal(exactJson([1n, value]), JSON.stringify([1, value]));
        assert.deepEqual(parseExactJson(JSON.stringify({ key: 'x'.repeat(20), text })), { key: 'x'.repeat(20), text });
      }),
    );
    const cycle: unknown[] = [1n];
    cycle.push(cycle);
    assert.throws(() => exactJson(cycle), TypeError);
  });
});
