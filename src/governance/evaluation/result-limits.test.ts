import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTooLarge } from './result-limits.ts';

describe('the result of an evaluation is too large', () => {
  it('by its text, or by how many values it has, however short they are', () => {
    assert.equal(isTooLarge(JSON.stringify('x'.repeat(40_000_000))), true);
    assert.equal(isTooLarge(`[${'{},'.repeat(1_000_001)}0]`), true);
    assert.equal(isTooLarge(`[${'1,'.repeat(2_000_001)}0]`), true);
    assert.equal(isTooLarge(`[${'"one value",'.repeat(1_000_000)}0]`), false);
  });
});
