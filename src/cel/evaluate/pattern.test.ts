import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EvaluationFailure } from '../model/value.ts';
import { compilePattern } from './pattern.ts';

describe('a regular expression', () => {
  it('is compiled once while it is used again soon', () => {
    assert.equal(compilePattern('a{5}'), compilePattern('a{5}'));
  });

  it('is forgotten after others of 10,000 instructions', () => {
    const first = compilePattern('b{100}');
    for (let index = 0; index < 12; index += 1) {
      compilePattern(`c{9${index % 10}0}${index}`);
    }
    assert.notEqual(compilePattern('b{100}'), first);
  });

  it('is not compiled when it is too large', () => {
    const failure = compilePattern('a{1000}'.repeat(20));
    assert.ok(failure instanceof EvaluationFailure);
    assert.match(failure.message, /^expression is too large/);
  });
});
