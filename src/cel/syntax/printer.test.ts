import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Expression } from '../ast.ts';
import { CelError } from '../errors.ts';
import {
  BINDING_MACROS,
  LIST_MACROS,
  MacroSet,
  MATH_MACROS,
  OPTIONAL_FLAT_MACROS,
  OPTIONAL_MACROS,
  parse,
  print,
  STANDARD_MACROS,
  TWO_VARIABLE_MACROS,
} from './index.ts';

const options = {
  macros: new MacroSet([
    ...STANDARD_MACROS,
    ...OPTIONAL_MACROS,
    ...OPTIONAL_FLAT_MACROS,
    ...TWO_VARIABLE_MACROS,
    ...BINDING_MACROS,
    ...LIST_MACROS,
    ...MATH_MACROS,
  ]),
  optionalSyntax: true,
  escapedIdentifiers: true,
};

function parsed(text: string): Expression {
  return parse(text, options).expression;
}

/** Where nodes are, and how they are numbered: what printing changes. */
const PLACES: ReadonlySet<string> = new Set(['id', 'start', 'end', 'position', 'nameStart', 'nameEnd']);

/** The tree without places; values that JSON does not have are told apart. */
function shape(expression: Expression): string {
  return JSON.stringify(expression, (key, value: unknown) => {
    if (PLACES.has(key)) {
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

describe('print', () => {
  const unchanged = [
    'object.spec.containers.all(c, !has(c.securityContext) || !c.securityContext.privileged)',
    'a && b && c && d || !e && f',
    'a && (b && c)',
    '(a || b) && (c || d)',
    '(a && (b && (c && d)))'.slice(1, -1),
    'a - (b - c) - d',
    '(a ? b : c) ? d : e ? f : g',
    'a ? (b ? c : d) : e',
    '(a == b) == (c == d)'.replace('(a == b)', 'a == b'),
    '-(1)',
    '-(-1)',
    '!(!a)',
    '-(-a)',
    '-1.a',
    '(-a).b',
    '(a + b).c(d)[e].?f[?g]',
    'a.`b-c`.`in`',
    '{"a": 1, ?b: c.?d}',
    '[a, ?b]',
    'Object.spec{containers: [Object.spec.containers{name: "x"}], ?`a-b`: c}',
    'a.exists(x, x.map(y, y > 0, y).size() == 1)',
    'a.?b.optMap(x, x + 1).orValue(0)',
    'cel.bind(x, a.b, x + x)',
    'a.transformMap(k, v, v != "", v)',
    'a.sortBy(x, -x)',
    'math.greatest(a, b, c)',
    '.a.b(.c)',
    '1.0 + 0.5 + 1e+21 + -0.0 + 5u + 9223372036854775807',
    String.raw`"\"\\\n\x00é🐱" + 'x'`.replace("'x'", '"x"'),
    String.raw`b"a\xff\""`,
  ];

  for (const text of unchanged) {
    it(`writes ${text} as it was`, () => assert.equal(print(parsed(text)), text));
  }

  it('writes what parses to the same expression', () => {
    fc.assert(
      fc.property(expressionText(), (text) => {
        const expression = parsed(text);
        const printed = print(expression);
        assert.equal(shape(parsed(printed)), shape(expression), `${text} was written ${printed}`);
      }),
      { numRuns: 1_000 },
    );
  });
});

const TOKENS: readonly string[] = [
  ...Array.from("()[]{}.,:?!-+*/%<= \n\\@'`&|"),
  ...'a b in true null as 1 2u .5 1e9 "s" """ b"x" r"\\" `q` <= == != && ||'.split(' '),
  ...'// has( .all(x, .map(x, .optMap( cel.bind('.split(' '),
  '\u{1f431}',
];

describe('parse', () => {
  const throwsNothingElse = (text: string): void => {
    try {
      const expression = parsed(text);
      assert.equal(shape(parsed(print(expression))), shape(expression));
    } catch (error) {
      assert.ok(error instanceof CelError, `${JSON.stringify(text)} gave ${String(error)}`);
      assert.ok(error.message.length > 0);
    }
  };

  it('takes any text, or says what is wrong', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 50 }), throwsNothingElse), { numRuns: 2_000 });
  });

  it('takes any tokens, or says what is wrong', () => {
    const token = fc.constantFrom(...TOKENS);
    fc.assert(
      fc.property(fc.array(token, { maxLength: 30 }), (tokens) => throwsNothingElse(tokens.join(''))),
      { numRuns: 5_000 },
    );
  });

  it('takes expressions with a mistake, or says what is wrong', () => {
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

/** Texts of expressions made by the grammar. */
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
