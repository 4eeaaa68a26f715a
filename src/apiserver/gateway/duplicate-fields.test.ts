import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { duplicateFields } from './duplicate-fields.ts';

describe('duplicateFields', () => {
  const cases: readonly (readonly [string, readonly string[]])[] = [
    ['{}', []],
    ['"a"', []],
    ['{"a":1,"b":{"a":2},"c":[{"a":3},{"a":4}]}', []],
    ['{"data":{"a":"b","a":"c"}}', ['data.a']],
    ['{"a":[0,{"b":1, "\\u0062":2},[3,{"c":"{\\"x\\":1}","c":"}"}]],"a":null}', ['a[1].b', 'a[2][1].c', 'a']],
    ['{"a":1,"a":2,"a":3}', ['a']],
  ];
  for (const [text, expected] of cases) {
    it(`finds ${expected.join(', ') || 'nothing'} in ${text}`, () => assert.deepEqual(duplicateFields(text), expected));
  }

  it('finds none in what JSON.stringify writes', () => {
    fc.assert(fc.property(fc.jsonValue(), (value) => assert.deepEqual(duplicateFields(JSON.stringify(value)), [])));
  });
});
