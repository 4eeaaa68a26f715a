import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { JsonScanError, JsonScanner } from './json-scan.ts';
import type { JsonMember } from './json-scan.ts';

function scanError(text: string, levels = 100): JsonScanError | undefined {
  try {
    new JsonScanner(Buffer.from(text), levels).document();
    return undefined;
  } catch (error) {
    assert.ok(error instanceof JsonScanError, String(error));
    return error;
  }
}

const errorOffset = (text: string): number | undefined => scanError(text)?.offset;

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

test('the scanner accepts the same texts as JSON.parse', () => {
  const token = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '"a"',
    '1',
    '-',
    '0.5e3',
    '01',
    '1e',
    '"\\u00g0"',
    '"\\u00E9"',
    '\u0001',
    '-0.5E+3',
    'null',
    'false',
    'true',
    'nul',
    '\\',
    '\n',
    ' ',
  );
  const soup = fc.array(token, { maxLength: 12 }).map((tokens) => tokens.join(''));
  const cut = fc.tuple(fc.json(), fc.nat(40)).map(([json, at]) => json.slice(0, at) + json.slice(at + 1));
  fc.assert(
    fc.property(fc.oneof(soup, cut, fc.json(), fc.string()), (text) => {
      assert.equal(errorOffset(text) === undefined, isJson(text), JSON.stringify(text));
    }),
    { numRuns: 2_000 },
  );
});

for (const [text, offset] of [
  ['', 0],
  ['{"a":1,}', 7],
  ['{"a" 1}', 5],
  ['[1,2', 4],
  ['{"a":tru}', 5],
  ['"a', 0],
  ['"\\x"', 0],
  ['1 2', 2],
] as const) {
  test(`the scanner points at offset ${offset} of ${JSON.stringify(text)}`, () => {
    assert.equal(errorOffset(text), offset);
  });
}

test('the scanner stops at the given nesting level', () => {
  assert.equal(scanError('[[{"a":[]}]]', 4), undefined);
  assert.deepEqual(
    [scanError('[[{"a":[]}]]', 3)].map((error) => [error?.reason, error?.offset]),
    [['nesting', 7]],
  );
  assert.equal(scanError('['.repeat(1_000_000), 1_000)?.reason, 'nesting');
});

test('members of the object and of chosen members are recorded', () => {
  const text = ' {"a" : 1, "b":{"c": [1, {"c":2}] ,"d":"x"},"e":null } ';
  const outer: JsonMember[] = [];
  const inner: JsonMember[] = [];
  const bytes = Buffer.from(text);
  const cut = (start: number, end: number): string => bytes.toString('utf8', start, end);
  const start = new JsonScanner(bytes, 10).document({
    record: (member) => outer.push(member),
    nested: (from, to) => (cut(from, to) === 'b' ? { record: (member) => inner.push(member) } : undefined),
  });
  assert.equal(start, 1);
  const shown = (members: readonly JsonMember[]): string[] =>
    members.map((member) => `${cut(member.keyStart, member.keyEnd)}=${cut(member.start, member.end)}`);
  assert.deepEqual(shown(outer), ['a=1', 'b={"c": [1, {"c":2}] ,"d":"x"}', 'e=null']);
  assert.deepEqual(shown(inner), ['c=[1, {"c":2}]', 'd="x"']);
});
