import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Expression } from '../model/ast.ts';
import { CelError } from '../model/errors.ts';
import {
  LIST_MACROS,
  MacroSet,
  OPTIONAL_FLAT_MACROS,
  OPTIONAL_MACROS,
  parse,
  STANDARD_MACROS,
  TWO_VARIABLE_MACROS,
} from './index.ts';

const options = {
  macros: new MacroSet([
    ...STANDARD_MACROS,
    ...OPTIONAL_MACROS,
    ...OPTIONAL_FLAT_MACROS,
    ...TWO_VARIABLE_MACROS,
    ...LIST_MACROS,
  ]),
  optionalSyntax: true,
  escapedIdentifiers: true,
};

function parsed(text: string): Expression {
  return parse(text, options).expression;
}

/** Properties with positions and ids. */
const POSITIONS: ReadonlySet<string> = new Set(['id', 'start', 'end', 'position', 'nameStart', 'nameEnd']);

/** The tree without positions as JSON, with a notation for values that JSON does not have. */
function shape(expression: Expression): string {
  return JSON.stringify(expression, (key, value: unknown) => {
    if (POSITIONS.has(key)) {
      return undefined;
    }
    if (typeof value === 'bigint') {
      return { bigint: String(value) };
    }
    if (value instanceof Set) {
      return { set: [...(value as Set<unknown>)] };
    }
    return Object.is(value, -0) ? '-0' : value;
  });
}

const TOKENS: readonly string[] = [
  ...Array.from("()[]{}.,:?!-+*/%<= \n\\@'`&|"),
  ...'a b in true null as 1 2u .5 1e9 "s" """ b"x" r"\\" `q` <= == != && ||'.split(' '),
  ...'// has( .all(x, .map(x, .optMap( cel.bind('.split(' '),
  '\u{1f431}',
];

describe('parse', () => {
  const throwsNothingElse = (text: string): void => {
    try {
      parsed(text);
    } catch (error) {
      assert.ok(error instanceof CelError, `${JSON.stringify(text)} gave ${String(error)}`);
      assert.ok(error.message.length > 0);
    }
  };

  it('accepts valid expressions, and ignores white space, comments and redundant brackets', () => {
    fc.assert(
      fc.property(expressionText(), (text) => {
        assert.equal(shape(parsed(`( // first )\n${text}\t)`)), shape(parsed(text)), text);
      }),
      { numRuns: 1_000 },
    );
  });

  it('parses any text or throws CelError', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 50 }), throwsNothingElse), { numRuns: 2_000 });
  });

  it('parses any tokens or throws CelError', () => {
    const token = fc.constantFrom(...TOKENS);
    fc.assert(
      fc.property(fc.array(token, { maxLength: 30 }), (tokens) => throwsNothingElse(tokens.join(''))),
      { numRuns: 5_000 },
    );
  });

  it('parses expressions with a mistake or throws CelError', () => {
    fc.assert(
      fc.property(
        expressionText(),
        fc.nat(),
        fc.constantFrom('', ')', ',', '?', '"', '@', '&', ' x '),
        (text, at, junk) => {
          const index = at % (text.length + 1);
          throwsNothingElse(text.slice(0, index) + junk + text.slice(index + 1));
        },
      ),
      { numRuns: 2_000 },
    );
  });
});

/** Generates valid expressions. */
function expressionText(): fc.Arbitrary<string> {
  const { expression } = fc.letrec<{ expression: string; leaf: string }>((tie) => {
    const one = tie('expression');
    const name = fc.constantFrom('a', 'b', 'object', 'x', '.r');
    const leaf = fc.oneof(
      name,
      fc.integer().map(String),
      fc
        .double({ noNaN: true, noDefaultInfinity: true, min: 0 })
        .map((value) => (Number.isInteger(value) ? value.toFixed(1) : String(value))),
      fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map((value) => `${value}u`),
      fc.string({ unit: 'grapheme', maxLength: 6 }).map((value) => JSON.stringify(value)),
      fc.constantFrom('true', 'null', "b'\\xff'", "r'\\d'", '[]', '{}', 'T{}', '-1', '-0.0'),
    );
    const expression_ = fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      leaf,
      fc
        .tuple(one, fc.constantFrom('+', '-', '*', '/', '%', '<', '==', 'in', '&&', '||'), one)
        .map((parts) => parts.join(' ')),
      fc
        .tuple(fc.constantFrom('!', '-', '--', '!!', '- '), one)
        .map(([operator, operand]) => `${operator}(${operand})`),
      one.map((operand) => `(${operand})`),
      fc.tuple(one, one, one).map(([a, b, c]) => `(${a}) ? (${b}) : ${c}`),
      fc
        .tuple(one, fc.constantFrom('.f', '.?g', '.`h-i`', '[0]', '[?"k"]', '.m()', '.size(1, 2)'))
        .map(([a, b]) => `(${a})${b}`),
      fc.array(one, { maxLength: 3 }).map((items) => `[${items.join(', ')}]`),
      fc.tuple(one, one).map(([key, value]) => `{?${key}: ${value}, "z": 1}`),
      one.map((value) => `Object.spec{a: ${value}, ?b: c}`),
      fc.tuple(one, one).map(([first, second]) => `f(${first}, ${second})`),
      fc
        .tuple(
          one,
          fc.constantFrom(
            'all(x, ',
            'exists_one(x, ',
            'map(x, ',
            'filter(x, ',
            'all(k, v, ',
            'transformMap(k, v, ',
            'optMap(x, ',
          ),
          one,
        )
        .map(([range, macro, body]) => `(${range}).${macro}${body})`),
      one.map((operand) => `has((${operand}).f)`),
      fc.tuple(one, one).map(([value, body]) => `cel.bind(v, ${value}, ${body})`),
    );
    return { expression: expression_, leaf };
  });
  return expression;
}
