import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { goldenCount, goldenDifferences } from './golden-run.ts';

describe('CEL as API servers evaluate it', () => {
  it(`gives the same values, errors and costs for ${goldenCount} expressions`, () => {
    assert.deepEqual(goldenDifferences(), []);
  });
});
