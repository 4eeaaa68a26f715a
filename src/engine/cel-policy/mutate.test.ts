import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseCelJson } from '../../cel/index.ts';
import { EngineError } from '../values/errors.ts';
import { MAX_NESTING } from '../values/json-text.ts';
import { plainJson } from './mutate.ts';

describe('plainJson', () => {
  it('gives the values of JSON.parse', () => {
    const text = '{"a":[1.0,{"b":9007199254740993}],"__proto__":{"c":2.0},"d":null,"e":"f"}';
    assert.deepEqual(plainJson(parseCelJson(text)), JSON.parse(text));
  });

  it('returns plain values themselves', () => {
    const plain = { list: [1, { text: 'a' }], nothing: null };
    assert.equal(plainJson(plain), plain);
    const mixed = plainJson({ plain, other: parseCelJson('1.0') });
    assert.deepEqual(mixed, { plain, other: 1 });
    assert.equal((mixed as { readonly plain: unknown }).plain, plain);
  });

  it('limits nesting', () => {
    const nested = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
    assert.doesNotThrow(() => plainJson(nested(MAX_NESTING) as []));
    assert.throws(() => plainJson(nested(MAX_NESTING + 2) as []), EngineError);
  });
});
