import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonValue } from '../../resources/index.ts';
import { isStoredAs } from './is-stored-as.ts';

describe('whether an API server stores what was applied', () => {
  for (const [stored, applied, expected] of [
    [{ type: 'object' }, { type: 'object', properties: {}, nullable: false, enum: [], description: '' }, true],
    [{ type: 'object', nullable: false, conversion: {} }, { type: 'object' }, true],
    [{ properties: { a: { type: 'string' } } }, { properties: {} }, false],
    [{ a: [{ b: 1 }] }, { a: [{ b: 1, c: null }] }, true],
    [{ a: [1] }, { a: [1, 2] }, false],
    [{}, { minimum: 0 }, false],
    [{ nullable: true }, {}, false],
    [[], {}, true],
  ] as const satisfies readonly (readonly [JsonValue, JsonValue, boolean])[]) {
    it(`${JSON.stringify(stored)} of ${JSON.stringify(applied)}: ${expected}`, () => {
      assert.equal(isStoredAs(stored, applied), expected);
    });
  }
});
