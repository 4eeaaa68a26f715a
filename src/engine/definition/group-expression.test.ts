import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { EngineError } from '../values/errors.ts';
import {
  constantResult,
  evaluateGroupExpression,
  MAX_EXPRESSION_DEPTH,
  parseGroupExpression,
} from './group-expression.ts';
import type { GroupExpression } from './group-expression.ts';

const MEMBERS = new Set(['a', 'b', 'c']);

/** The result, and the members that were called, in order. */
function run(source: string, values: Record<string, boolean | undefined>): [boolean | undefined, string] {
  const called: string[] = [];
  const result = evaluateGroupExpression(parseGroupExpression(source, MEMBERS), (name) => {
    called.push(name);
    return values[name];
  });
  return [result, called.join('')];
}

for (const [source, values, expected, called] of [
  ['a()', { a: true }, true, 'a'],
  ['!a()', { a: true }, false, 'a'],
  ['a() && b()', { a: false, b: true }, false, 'a'],
  ['a() && b()', { a: true, b: true }, true, 'ab'],
  ['a() || b()', { a: true, b: false }, true, 'a'],
  ['a() || b() && c()', { a: false, b: true, c: false }, false, 'abc'],
  ['(a() || b()) && c()', { a: true, b: true, c: true }, true, 'ac'],
  ['a() == b()', { a: false, b: false }, true, 'ab'],
  ['a() != b() || c()', { a: true, b: true, c: true }, true, 'abc'],
  ['a() && b() == c()', { a: true, b: false, c: false }, true, 'abc'],
  [' ! ( a ( ) ) || true', { a: true }, true, 'a'],
  ['false || !!a()', { a: true }, true, 'a'],
  ['a() // && c()\n && b() //', { a: true, b: true }, true, 'ab'],
] as const) {
  test(`${source} with ${JSON.stringify(values)} is ${expected} and calls ${called}`, () => {
    assert.deepEqual(run(source, values), [expected, called]);
  });
}

test('neither a member without a verdict nor its negation is true or false', () => {
  assert.deepEqual(run('a()', {}), [undefined, 'a']);
  assert.deepEqual(run('!a()', {}), [undefined, 'a']);
  assert.deepEqual(run('a() == a()', {}), [undefined, 'aa']);
  assert.deepEqual(run('a() || b()', { b: true }), [true, 'ab']);
  assert.deepEqual(run('a() || b()', { b: false }), [undefined, 'ab']);
  assert.deepEqual(run('a() && b()', { b: false }), [false, 'ab']);
  assert.deepEqual(run('a() && b()', { b: true }), [undefined, 'ab']);
});

for (const [source, message, column] of [
  ['', /expected a member call.*got the end/, 1],
  ['a() &&', /got the end/, 7],
  ['a() & b()', /unexpected character/, 5],
  ['a() b()', /expected an operator or the end, got "b"/, 5],
  ['a', /expected "\(", got the end/, 2],
  ['a(1)', /unexpected character/, 3],
  ['a(b())', /expected "\)", got "b"/, 3],
  ['nobody()', /unknown member: expected one of a, b, c, got "nobody" /, 1],
  ['a1()', /unknown member: expected one of a, b, c, got "a1": did you mean a\(\)\? /, 1],
  ['true', /uses no member/, 1],
  ['(a()', /expected "\)"/, 5],
  ['a() = b()', /unexpected character/, 5],
  ['a() in b()', /got "in"/, 5],
  ['"a"', /unexpected character/, 1],
  ['a() / b()', /unexpected character/, 5],
] as const) {
  test(`the expression ${JSON.stringify(source)} is refused at column ${column}`, () => {
    assert.throws(
      () => parseGroupExpression(source, MEMBERS),
      (error: unknown) => {
        assert.ok(error instanceof EngineError);
        assert.equal(error.code, 'expression-invalid');
        assert.match(error.message, message);
        assert.equal(error.position?.column, column);
        assert.ok(error.message.endsWith(`${' '.repeat(column - 1)}^`), 'the caret stands below the column');
        return true;
      },
    );
  });
}

test('depth and length are limited, so that neither parsing nor evaluating can overflow the stack', () => {
  const deep = MAX_EXPRESSION_DEPTH + 1;
  for (const source of ['('.repeat(deep), '!'.repeat(deep), `a()${' && a()'.repeat(deep)}`, 'a() ||'.repeat(10_000)]) {
    assert.throws(() => parseGroupExpression(source, MEMBERS), { code: 'expression-invalid' });
  }
});

/** Expressions as text, with full parentheses, and their meaning. */
const { expression } = fc.letrec<{ expression: [string, (v: Record<string, boolean>) => boolean] }>((tie) => ({
  expression: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom(
      ...[...MEMBERS].map(
        (name) =>
          [`${name}()`, (v: Record<string, boolean>) => v[name] ?? false] as [
            string,
            (v: Record<string, boolean>) => boolean,
          ],
      ),
    ),
    fc
      .tuple(tie('expression'), fc.constantFrom('&&', '||', '==', '!='), tie('expression'))
      .map(([[left, l], operator, [right, r]]): [string, (v: Record<string, boolean>) => boolean] => [
        `(${left} ${operator} ${right})`,
        (v) =>
          operator === '&&' ? l(v) && r(v) : operator === '||' ? l(v) || r(v) : (l(v) === r(v)) === (operator === '=='),
      ]),
    tie('expression').map(([inner, f]): [string, (v: Record<string, boolean>) => boolean] => [
      `!${inner}`,
      (v) => !f(v),
    ]),
  ),
}));

test('any expression gives the result of its operators', () => {
  fc.assert(
    fc.property(
      expression,
      fc.record({ a: fc.boolean(), b: fc.boolean(), c: fc.boolean() }),
      ([source, meaning], values) => {
        const parsed: GroupExpression = parseGroupExpression(source, MEMBERS);
        assert.equal(
          evaluateGroupExpression(parsed, (name) => values[name as 'a']),
          meaning(values),
        );
      },
    ),
  );
});

test('the parser throws only EngineError for any text', () => {
  const token = fc.constantFrom('a', 'b()', '(', ')', '!', '&&', '||', '==', '!=', 'true', ' ', '\n', '&', '💥', '"');
  const text = fc.oneof(
    fc.array(token).map((tokens) => tokens.join('')),
    fc.string(),
  );
  fc.assert(
    fc.property(text, (source) => {
      try {
        parseGroupExpression(source, MEMBERS);
      } catch (error) {
        assert.ok(error instanceof EngineError && error.code === 'expression-invalid');
      }
    }),
    { numRuns: 1_000 },
  );
});

for (const [source, expected] of [
  ['a() && !a()', false],
  ['a() || !a()', true],
  ['a() && false', false],
  ['a() != a() || b() == !b()', false],
  ['(a() || b()) == (b() || a())', true],
  ['a()', undefined],
  ['a() && (b() || !b())', undefined],
  ['a() != b()', undefined],
] as const) {
  test(`${source} is ${expected ?? 'not the same'}, whatever its members say`, () => {
    assert.equal(constantResult(source, MEMBERS), expected);
  });
}

test('an expression of more members than are tried is not called constant', () => {
  const names = Array.from({ length: 64 }, (_, index) => `m${index}`);
  const source = names.map((name) => `(${name}() || !${name}())`).join(' && ');
  assert.equal(constantResult(source, new Set(names)), undefined);
});
