// Every expression of docs/cel.md gives what the page says.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import {
  Cancellation,
  CelError,
  createEnvironment,
  DYN,
  EvaluationFailure,
  equalValues,
  parseCelJson,
  printValue,
} from '../../../src/cel/index.ts';
import type { CelValue } from '../../../src/cel/index.ts';

const page = readFileSync(new URL('../../../docs/cel.md', import.meta.url), 'utf8');
const [, objectJson = ''] = /^```json\n(.*?)^```/ms.exec(page) ?? [];
const object = parseCelJson(objectJson);
const environment = createEnvironment({ variables: { object: DYN } });

function valueOf(text: string): CelValue | string {
  try {
    const { value } = environment.compile(text).run({ object }, { budget: 1_000_000 });
    assert.ok(!(value instanceof Cancellation));
    return value instanceof EvaluationFailure ? `error: ${value.message}` : value;
  } catch (error) {
    assert.ok(error instanceof CelError);
    return `error: ${error.message}`;
  }
}

const snippets = [...page.matchAll(/^```cel\n(.*?)^```/gms)].flatMap(([, block = '']) =>
  block
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, expression = '', result = ''] = /^(.*?)\s+\/\/ (.*)$/.exec(line) ?? [];
      return { line, expression, result };
    }),
);

describe('docs/cel.md', () => {
  it('has snippets', () => assert.ok(snippets.length > 30));

  for (const { line, expression, result } of snippets) {
    it(expression === '' ? line : expression, () => {
      assert.notEqual(expression, '', 'expected an expression, two slashes and what it gives');
      const got = valueOf(expression);
      if (result.startsWith('error: ')) {
        assert.ok(typeof got === 'string' && got.includes(result.slice('error: '.length)), line);
      } else {
        const expected = valueOf(result);
        assert.ok(equalValues(got, expected), `expected ${result}, got ${printValue(got)}`);
      }
    });
  }
});
