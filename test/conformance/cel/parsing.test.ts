import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { tests } from '@bufbuild/cel-spec/testdata/parsing.js';
import { CelError } from '../../../src/cel/model/errors.ts';
import { MacroSet, parse, STANDARD_MACROS } from '../../../src/cel/syntax/index.ts';
import type { ParsedExpression } from '../../../src/cel/syntax/index.ts';
import { debugText } from './debug-text.ts';

/** One test of cel-go's parser: either a tree is expected, or an error. */
interface ParsingTest {
  readonly original: { readonly expr: string };
  readonly ast?: string;
  readonly error?: string;
}

/** Tests whose parser allows less nesting than API servers do: all expect an error about it. */
const NESTING_IN_TESTS = 32;

/** What is not compared, by expression, and why. */
const EXCLUDED: ReadonlyMap<string, string> = new Map([
  ['x{?.', 'the test stops after 4 attempts at recovery, and its parser takes the optional syntax'],
]);

const ESCAPE_IS_SHOWN = 'errors about escapes point at the escape, not at the start of the string';

/** Errors that stand at another place here, by expression, and why. */
const OTHER_PLACE: ReadonlyMap<string, string> = new Map([
  [String.raw`"\xFh"`, ESCAPE_IS_SHOWN],
  [String.raw`"\a\b\f\n\r\t\v\'\"\\\? Illegal escape \>"`, ESCAPE_IS_SHOWN],
]);

const macros = new MacroSet(STANDARD_MACROS);

describe("cel-go's parser tests", () => {
  const all = tests.tests as readonly ParsingTest[];

  for (const [index, test] of all.entries()) {
    const { expr } = test.original;
    const name = `${index} ${expr.slice(0, 60).replaceAll(/\s+/gu, ' ')}`;
    if (EXCLUDED.has(expr)) {
      it.skip(`${name} (${EXCLUDED.get(expr)})`, () => {});
    } else if (test.ast === undefined) {
      it(name, () => expectError(test));
    } else {
      it(name, () => {
        assert.equal(
          debugText(parseHere(expr).expression, (_node, kind) => `^#${kind}#`),
          test.ast,
        );
      });
    }
  }

  it('are all there', () => {
    assert.ok(all.length >= 190, `expected at least 190 tests, got ${all.length}`);
  });
});

function parseHere(text: string, maxNesting?: number): ParsedExpression {
  const options = { macros, optionalSyntax: false, escapedIdentifiers: false };
  return parse(text, maxNesting === undefined ? options : { ...options, maxNesting });
}

/**
 * Where an error stands is compared, and what it says unless it is about the syntax: ANTLR lists tokens there, which tells
 * users little.
 */
function expectError({ original: { expr }, error = '' }: ParsingTest): void {
  const isAboutNesting = error.includes(':-1:0:');
  assert.throws(
    () => parseHere(expr, isAboutNesting ? NESTING_IN_TESTS : undefined),
    (thrown) => {
      assert.ok(thrown instanceof CelError);
      const first = thrown.issues[0];
      assert.ok(first !== undefined);
      const [, place = '', message = ''] = /^ERROR: :(-?\d+:\d+): (.*)/u.exec(error) ?? [];
      if (isAboutNesting || OTHER_PLACE.has(expr)) {
        return true;
      }
      assert.equal(`${first.line}:${first.column}`, place);
      if (message.startsWith('Syntax error')) {
        assert.match(first.message, /^Syntax error/u);
      } else {
        assert.equal(first.message, message);
      }
      return true;
    },
  );
}
