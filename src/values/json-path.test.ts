import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parseJsonPath } from './json-path.ts';

const pod = {
  metadata: { name: 'a', annotations: { 'io.example/x': 'y' } },
  status: {
    conditions: [
      { type: 'Ready', status: 'True', age: 3 },
      { type: 'Other', status: 'False', age: 1 },
    ],
  },
};

describe('paths of printer columns', () => {
  const cases: readonly (readonly [string, readonly unknown[]])[] = [
    ['.metadata.name', ['a']],
    ["['metadata']['name']", ['a']],
    ['.metadata.missing', []],
    [String.raw`.metadata.annotations.io\.example/x`, ['y']],
    [".metadata.annotations['io.example/x']", ['y']],
    [String.raw`.metadata.annotations['io\.example/x']`, ['y']],
    ['.status.conditions[0].type', ['Ready']],
    ['.status.conditions[-1].type', ['Other']],
    ['.status.conditions[*].type', ['Ready', 'Other']],
    ['.status.conditions[0:1].type', ['Ready']],
    ['.status.conditions[?(@.type=="Ready")].status', ['True']],
    ["$.status.conditions[?(@.type != 'Ready')].status", ['False']],
    ['.status.conditions[?(@.age>2)].type', ['Ready']],
    ['.status.conditions[?(@.age)].age', [3, 1]],
    ['..type', ['Ready', 'Other']],
    ['.status.constructor', []],
  ];
  for (const [path, found] of cases) {
    it(`finds ${path}`, () => {
      assert.deepEqual(parseJsonPath(path)?.find(pod), found);
    });
  }

  it('are none where they do not end', () => {
    assert.deepEqual(
      ['.a[', '.a[?(@.b==)]', '.a]', ".a['b", '.a[x]'].map((path) => parseJsonPath(path)),
      Array.from({ length: 5 }, () => undefined),
    );
  });

  it('are parsed or rejected, for arbitrary text', () => {
    const part = fc.constantFrom(
      '.a',
      '[0]',
      '[*]',
      "['b']",
      '..',
      '[?(@.a=="b")]',
      '[',
      '(',
      "'",
      '@',
      '\\',
      '$',
      '[1:',
      ']',
    );
    fc.assert(
      fc.property(
        fc.array(part).map((parts) => parts.join('')),
        (path) => {
          parseJsonPath(path)?.find({ a: [{ b: 1 }] });
        },
      ),
      { numRuns: 500 },
    );
  });
});
