import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { JsonObject } from '../../../resources/index.ts';
import { compareStatus } from './compare-status.ts';

const STATUS: JsonObject = {
  compliant: 'NonCompliant',
  lastEvaluatedGeneration: 2,
  compliancyDetails: [{ Compliant: 'NonCompliant', conditions: [{ reason: 'a' }, { reason: 'b' }] }],
  relatedObjects: [
    { object: { kind: 'Pod', metadata: { name: 'a' } }, compliant: 'Compliant' },
    { object: { kind: 'Pod', metadata: { name: 'b' } }, compliant: 'NonCompliant' },
  ],
  names: ['x', 'y'],
};

const linesOf = (expected: JsonObject): readonly string[] =>
  compareStatus(expected, STATUS).lines.map(({ text }) => text);

describe('the comparison with an expected status', () => {
  const table: readonly [string, JsonObject, boolean, readonly string[]][] = [
    ['an equal field', { compliant: 'NonCompliant' }, true, [".compliant: 'NonCompliant' does match 'NonCompliant'"]],
    ['another value', { compliant: 'Compliant' }, false, [".compliant: 'Compliant' does not match 'NonCompliant'"]],
    ['a number', { lastEvaluatedGeneration: 2 }, true, [".lastEvaluatedGeneration: '2' does match '2'"]],
    ['a missing field', { history: [] }, false, ["Key 'history' not found in result at path ''"]],
    ['a list of texts', { names: ['x', 'y'] }, true, [".names: '[x y]' does match '[x y]'"]],
    ['another list of texts', { names: ['y'] }, false, [".names: '[y]' does not match '[x y]'"]],
    ['a list in place of a text', { compliant: [{}] }, false, ['skip compliant, .compliant is not array,']],
    [
      'a mapping in place of a text',
      { compliant: { a: 1 } },
      false,
      ["The input status field '.compliant' is not the right type - expected 'string'"],
    ],
    [
      'elements in any order',
      { relatedObjects: [{ compliant: 'NonCompliant' }, { object: { metadata: { name: 'a' } } }] },
      true,
      ['.relatedObjects[0] matches', '.relatedObjects[1] matches', '.relatedObjects matches'],
    ],
    [
      'elements up to the first that is not there',
      { relatedObjects: [{ compliant: 'Pending' }, { compliant: 'Compliant' }] },
      false,
      ['.relatedObjects[0] does not match any elements', '.relatedObjects does not match the elements'],
    ],
    [
      'lists within elements, without a word about them',
      { compliancyDetails: [{ conditions: [{ reason: 'b' }] }] },
      true,
      ['.compliancyDetails[0] matches', '.compliancyDetails matches'],
    ],
  ];
  for (const [name, expected, isMatch, lines] of table) {
    it(`reports ${name}`, () => {
      assert.equal(compareStatus(expected, STATUS).isMatch, isMatch);
      assert.deepEqual(linesOf(expected), lines);
    });
  }

  it('compares fields in the order of their names, whatever the file has', () => {
    const lines = linesOf({ names: ['x', 'y'], compliant: 'NonCompliant' });
    assert.deepEqual(
      lines.map((line) => line.split(':')[0]),
      ['.compliant', '.names'],
    );
  });

  it('does not take names of prototypes for fields', () => {
    assert.equal(compareStatus({ constructor: 'x' }, {}).isMatch, false);
  });

  it('ends with deeply nested expectations', () => {
    const deep = (value: JsonObject): JsonObject =>
      Array.from({ length: 5_000 }).reduce<JsonObject>((inner) => ({ a: inner }), value);
    assert.equal(compareStatus(deep({}), deep({})).isMatch, false);
  });

  it('finds that every status has all of itself', () => {
    const values = fc.letrec<{ value: JsonObject }>((tie) => ({
      value: fc.dictionary(
        fc.stringMatching(/^[a-z]{1,5}$/),
        fc.oneof(
          fc.string(),
          fc.integer(),
          fc.boolean(),
          fc.array(fc.string()),
          fc.array(tie('value'), { minLength: 1 }),
          tie('value'),
        ),
        { maxKeys: 4 },
      ),
    }));
    fc.assert(fc.property(values.value, (status) => compareStatus(status, status).isMatch));
  });
});
