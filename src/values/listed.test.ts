import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { listed } from './listed.ts';

describe('a list in a message', () => {
  it('is complete if it is short', () => {
    assert.equal(listed([], 2), '');
    assert.equal(listed(['a', 'b'], 2), 'a, b');
    assert.equal(listed(['a', 'b'], 2, '; '), 'a; b');
  });

  it('has the number of those that it does not name', () => {
    assert.equal(listed(['a', 'b', 'c', 'd'], 2), 'a, b and 2 more');
    assert.equal(listed(['a', 'b', 'c'], 2, '; '), 'a; b; and 1 more');
    assert.equal(listed(['a', 'b'], 5, ', ', 7), 'a, b and 5 more');
  });
});
