import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Expression } from '../model/ast.ts';
import { CelError, formatIssue } from '../model/errors.ts';
import { CelDouble, CelUint } from '../model/value.ts';
import type { CelValue } from '../model/value.ts';
import {
  LIST_MACROS,
  MacroSet,
  MAX_EXPRESSION_CODE_POINTS,
  MAX_NESTING,
  OPTIONAL_FLAT_MACROS,
  OPTIONAL_MACROS,
  parse,
  STANDARD_MACROS,
  TWO_VARIABLE_MACROS,
} from './index.ts';

const macros = new MacroSet([
  ...STANDARD_MACROS,
  ...OPTIONAL_MACROS,
  ...OPTIONAL_FLAT_MACROS,
  ...TWO_VARIABLE_MACROS,
  ...LIST_MACROS,
]);

function parsed(text: string): Expression {
  return parse(text, { macros, optionalSyntax: true, escapedIdentifiers: true }).expression;
}

function errorOf(text: string): CelError {
  try {
    parsed(text);
  } catch (error) {
    assert.ok(error instanceof CelError);
    assert.equal(error.code, 'syntax-invalid');
    return error;
  }
  return assert.fail(`expected an error of ${text}`);
}

/** A tree in prefix notation: `(_+_ a (_*_ b c))`. */
function outline(node: Expression): string {
  switch (node.kind) {
    case 'literal':
      return JSON.stringify(node.value);
    case 'identifier':
      return node.name;
    case 'select':
      return `(${node.isTest ? 'has' : '.'} ${outline(node.operand)} ${node.field})`;
    case 'call':
      return `(${[node.function, ...(node.target === undefined ? [] : [node.target]), ...node.args]
        .map((part) => (typeof part === 'string' ? part : outline(part)))
        .join(' ')})`;
    case 'list':
      return `[${node.elements.map((element, index) => (node.optionalIndexes.has(index) ? '?' : '') + outline(element)).join(' ')}]`;
    case 'map':
      return `{${node.entries.map((entry) => `${entry.isOptional ? '?' : ''}${outline(entry.key)}:${outline(entry.value)}`).join(' ')}}`;
    case 'struct':
      return `${node.typeName}{${node.fields.map((field) => `${field.isOptional ? '?' : ''}${field.name}:${outline(field.value)}`).join(' ')}}`;
    default: {
      const variables = [node.variable, ...(node.secondVariable === undefined ? [] : [node.secondVariable])].join(',');
      const parts = [node.range, node.initial, node.condition, node.step, node.result].map(outline);
      return `(fold ${variables} ${node.accumulator} ${parts.join(' ')})`;
    }
  }
}

describe('literals', () => {
  const values: readonly (readonly [text: string, value: CelValue])[] = [
    ['0', 0],
    ['-0', 0],
    ['007', 7],
    ['0xFf', 255],
    ['-0x10', -16],
    ['9007199254740991', 9007199254740991],
    ['9007199254740992', 9007199254740992n],
    ['-9223372036854775808', -9223372036854775808n],
    ['18446744073709551615u', new CelUint(18446744073709551615n)],
    ['0x1U', new CelUint(1n)],
    ['1.0', new CelDouble(1)],
    ['-0.0', new CelDouble(-0)],
    ['.5', 0.5],
    ['1e3', new CelDouble(1000)],
    ['1.5e-3', 0.0015],
    ['null', null],
    ['true', true],
    [String.raw`'\a\b\f\n\r\t\v\\\'\"\?\``.concat("'"), '\u0007\b\f\n\r\t\v\\\'"?`'],
    [String.raw`"\x41\101\u00e9\U0001F431"`, 'AAé🐱'],
    [String.raw`r"\d" + ''`.slice(0, 5), String.raw`\d`],
    ["'''it's\r\n''two'''", "it's\n''two"],
    ['""""quoted" text"""', '"quoted" text'],
    [String.raw`b"é\xff\000"`, Uint8Array.of(0xc3, 0xa9, 0xff, 0)],
    [String.raw`bR'\x'`, Uint8Array.of(92, 120)],
  ];

  for (const [text, value] of values) {
    it(`reads ${JSON.stringify(text)}`, () => {
      const node = parsed(text);
      assert.ok(node.kind === 'literal');
      assert.deepEqual(node.value, value);
    });
  }

  const mistakes: readonly (readonly [text: string, message: string, column: number])[] = [
    ['9223372036854775808', 'invalid int literal', 1],
    ['-9223372036854775809', 'invalid int literal', 1],
    ['18446744073709551616u', 'invalid uint literal', 1],
    ['1e400', 'invalid double literal', 1],
    [`1${'0'.repeat(50_000)}`, 'invalid int literal', 1],
    [String.raw`'\ud800'`, 'invalid unicode code point', 1],
    [String.raw`b'\u0041'`, 'unable to unescape string', 1],
    [String.raw`'a\qb'`, String.raw`Syntax error: token recognition error at: '\q'`, 3],
    ['"a', `Syntax error: token recognition error at: '"a'`, 1],
    ["'''a'", `Syntax error: token recognition error at: ''''a''`, 1],
  ];

  for (const [text, message, column] of mistakes) {
    it(`refuses ${JSON.stringify(text.slice(0, 30))}`, () => {
      const [issue] = errorOf(text).issues;
      assert.equal(issue?.message, message);
      assert.equal(issue.column, column);
    });
  }
});

describe('operators', () => {
  const outlines: readonly (readonly [text: string, outline: string])[] = [
    ['a + b * c - d', '(_-_ (_+_ a (_*_ b c)) d)'],
    ['a * b / c % d', '(_%_ (_/_ (_*_ a b) c) d)'],
    ['a < b == c', '(_==_ (_<_ a b) c)'],
    ['a in b && c || d', '(_||_ (_&&_ (@in a b) c) d)'],
    ['a && b && c && d', '(_&&_ (_&&_ a b) (_&&_ c d))'],
    ['a ? b : c ? d : e', '(_?_:_ a b (_?_:_ c d e))'],
    ['!!a', 'a'],
    ['!!!a', '(!_ a)'],
    ['--a', 'a'],
    ['-a.b', '(-_ (. a b))'],
    ['-1.a', '(. -1 a)'],
    ['!-1', '(!_ -1)'],
    ['--1', '1'],
    ['a - -1', '(_-_ a -1)'],
    ['a-1', '(_-_ a 1)'],
    ['a.b[c].d(e)', '(d (_[_] (. a b) c) e)'],
    ['a.?b[?c]', '(_[?_] (_?._ a "b") c)'],
    ['.a.b', '(. .a b)'],
    ['.f(a)', '(.f a)'],
    ['a.`b-c/d e.f`', '(. a b-c/d e.f)'],
    ['a.as.namespace', '(. (. a as) namespace)'],
    ['[1, ?a, 2,]', '[1 ?a 2]'],
    ['[,]', '[]'],
    ['{?a: b, c: d,}', '{?a:b c:d}'],
    ['{,}', '{}'],
    ['Object{}', 'Object{}'],
    ['Object.spec.containers{a: 1, ?`b-c`: d}', 'Object.spec.containers{a:1 ?b-c:d}'],
    ['.a . b /* c */'.slice(0, 6), '(. .a b)'],
    ['a . b // why\n . c { x : 1 }', 'a.b.c{x:1}'],
    ['a.b {x: 1}.x', '(. a.b{x:1} x)'],
    ['namespace.as{}', 'namespace.as{}'],
    ['a // comment', 'a'],
  ];

  for (const [text, expected] of outlines) {
    it(`parses ${JSON.stringify(text)}`, () => assert.equal(outline(parsed(text)), expected));
  }

  it('sets the range of nodes and the position of their errors', () => {
    const node = parsed('  (a.b) . fn( c )');
    assert.ok(node.kind === 'call');
    const { start, end, position, nameStart, nameEnd } = node;
    assert.deepEqual(
      { start, end, position, nameStart, nameEnd },
      { start: 2, end: 17, position: 12, nameStart: 10, nameEnd: 12 },
    );
    assert.equal(node.target?.position, 4);
  });

  it('gives every node a unique id', () => {
    const { expression, nodeCount } = parse('a.optMap(x, [x, {1: T{f: x}}]).sortBy(y, y)', {
      macros,
      optionalSyntax: true,
      escapedIdentifiers: false,
    });
    const ids = [
      ...JSON.stringify(expression, (key, value: unknown) => (key === 'macro' ? undefined : value)).matchAll(
        /"id":(\d+)/gu,
      ),
    ].map(([, id]) => Number(id));
    assert.equal(new Set(ids).size, ids.length);
    assert.ok(Math.max(...ids) <= nodeCount);
  });
});

describe('macros', () => {
  const all = 'true (@not_strictly_false @result) (_&&_ @result p) @result';
  const outlines: readonly (readonly [text: string, outline: string])[] = [
    ['has(a.b)', '(has a b)'],
    ['a.all(x, p)', `(fold x @result a ${all})`],
    ['a.all(x, y, p)', `(fold x,y @result a ${all})`],
    ['a.exists(x, p)', '(fold x @result a false (@not_strictly_false (!_ @result)) (_||_ @result p) @result)'],
    ['a.exists_one(x, p)', '(fold x @result a 0 true (_?_:_ p (_+_ @result 1) @result) (_==_ @result 1))'],
    ['a.map(x, e)', '(fold x @result a [] true (_+_ @result [e]) @result)'],
    ['a.map(x, p, e)', '(fold x @result a [] true (_?_:_ p (_+_ @result [e]) @result) @result)'],
    ['a.filter(x, p)', '(fold x @result a [] true (_?_:_ p (_+_ @result [x]) @result) @result)'],
    ['a.transformList(x, y, e)', '(fold x,y @result a [] true (_+_ @result [e]) @result)'],
    ['a.transformMap(x, y, e)', '(fold x,y @result a {} true (cel.@mapInsert @result x e) @result)'],
    [
      'a.transformMapEntry(x, y, p, e)',
      '(fold x,y @result a {} true (_?_:_ p (cel.@mapInsert @result e) @result) @result)',
    ],
    ['a.optMap(x, e)', '(_?_:_ (hasValue a) (optional.of (fold #unused x [] (value a) false x e)) (optional.none))'],
    ['a.optFlatMap(x, e)', '(_?_:_ (hasValue a) (fold #unused x [] (value a) false x e) (optional.none))'],
    [
      'a.sortBy(x, k)',
      '(fold #unused @__sortBy_input__ [] a false @__sortBy_input__ (@sortByAssociatedKeys @__sortBy_input__ (fold x @result @__sortBy_input__ [] true (_+_ @result [k]) @result)))',
    ],
    ['a.bind(x, b, c)', '(bind a x b c)'],
    ['a.all(x)', '(all a x)'],
    ['has(a, b)', '(has a b)'],
  ];

  for (const [text, expected] of outlines) {
    it(`expands ${text}`, () => assert.equal(outline(parsed(text)), expected));
  }

  const mistakes: readonly (readonly [text: string, message: string])[] = [
    ['has(a)', 'invalid argument to has() macro'],
    ['a.all(x.y, true)', 'argument must be a simple name'],
    ['a.map(1, true)', 'argument is not an identifier'],
    ['a.all(__result__, true)', 'iteration variable overwrites accumulator variable'],
    ['a.all(x, x, true)', 'duplicate variable name: x'],
    ['a.optMap(1, b)', 'optMap() variable name must be a simple identifier'],
    ['{}.sortBy(x, x)', 'sortBy can only be applied to a list, identifier, comprehension, call or select expression'],
  ];

  for (const [text, message] of mistakes) {
    it(`refuses ${text}`, () => assert.equal(errorOf(text).issues[0]?.message, message));
  }
});

describe('hints for syntax errors', () => {
  const cases: readonly (readonly [text: string, hint: RegExp | undefined])[] = [
    ["has(a.labels['x'])", /'key' in a\.b/],
    ['has(a.labels.app-name)', /'key' in a\.b/],
    ['has(a)', undefined],
    [
      '// no pod on the control plane !has(object.spec.tolerations)',
      /takes the whole expression: .* write the block with \|/,
    ],
    ['// nothing here', /takes the whole expression/],
    ['// pods only object.kind == 1 &&\n b)', /takes a part of the expression/],
    ['(a // and || b\n', /takes a part of the expression/],
    ["a.all(c, // each one c.image.startsWith('a'))", /takes a part of the expression/],
    ['a ? b // one : c', /takes a part of the expression/],
    ['// a comment\n a b', undefined],
    ["a == '// && b' c", undefined],
    ['a b // && c', undefined],
  ];
  for (const [text, hint] of cases) {
    it(`${hint === undefined ? 'do not explain' : 'explain'} ${text}`, () => {
      const hints = errorOf(text)
        .issues.flatMap((issue) => issue.hints)
        .filter((one) => /comment|key/.test(one));
      assert.equal(hints.length, hint === undefined ? 0 : 1);
      assert.match(hints[0] ?? '', hint ?? /^$/);
    });
  }
});

describe('errors', () => {
  it('are all reported, with positions and excerpts', () => {
    const error = errorOf('a +\n  f(b c, 1e999) &&\n  has(c)');
    assert.deepEqual(
      error.issues.map(({ line, column, message }) => [line, column, message]),
      [
        [2, 7, "Syntax error: mismatched input 'c' expecting ')'"],
        [2, 10, 'invalid double literal'],
        [3, 7, 'invalid argument to has() macro'],
      ],
    );
    assert.equal(
      error.issues.map(formatIssue)[0],
      "ERROR: <input>:2:7: Syntax error: mismatched input 'c' expecting ')'\n |   f(b c, 1e999) &&\n | ......^",
    );
  });

  it('count columns in code points, and have wide dots below wide characters', () => {
    assert.equal(
      errorOf("'🐱é' ++").message.split('\n').slice(0, 3).join('\n'),
      "ERROR: <input>:1:7: Syntax error: mismatched input '+' expecting an expression\n | '🐱é' ++\n | .．．...^",
    );
  });

  const hints: readonly (readonly [text: string, hint: string])[] = [
    ['a = b', "did you mean '=='?"],
    ['a === b', "did you mean '=='?"],
    ['a & b', "did you mean '&&'?"],
    ['a | b', "did you mean '||'?"],
    ['a and b', "did you mean '&&'?"],
    ['(a OR b)', "did you mean '||'?"],
    ['a not in b', "did you mean '!(a in b)'?"],
    ['a ? b', "a condition has two outcomes: 'condition ? this : that'"],
    ['a.', 'the expression ends too early'],
    ['namespace == "x"', "'namespace' is a word that CEL reserves: fields may be named so, variables not"],
    ['a.in', `'in' is a word of the language: write ["in"], or __in__ for a field of a schema`],
    ['T{"a": 1}', 'names of fields are written without quotes'],
    ['a;b', 'an expression is one value: join conditions by && instead of ;'],
    ['a\n# b', 'a comment begins with //'],
    ['/* a */ b', 'a comment begins with //, and ends with its line'],
    ["a == 'b", 'the text is not closed: its quote is missing on this line'],
    ['!-a', '! and - cannot follow each other: put brackets around the inner one'],
  ];

  for (const [text, hint] of hints) {
    it(`help with ${text}`, () => {
      const all = errorOf(text).issues.flatMap((issue) => issue.hints);
      assert.ok(all.includes(hint), `expected ${hint}, got ${all.join(' / ')}`);
    });
  }

  it('of one mistake are reported once', () => {
    for (const text of ['f(a b, c)', '[1 2, 3]', '{a b}', 'x not in y', 'a == == b', '(a', 'a.b.', 'f(a,']) {
      assert.equal(errorOf(text).issues.length, 1, text);
    }
  });

  it('stop after a hundred', () => {
    assert.equal(errorOf('@'.repeat(1000)).issues.length, 100);
  });

  it('include syntax that the environment does not support', () => {
    const options = { macros, optionalSyntax: false, escapedIdentifiers: false };
    for (const text of ['a.?b', 'a[?b]', '[?a]', '{?a: b}', 'T{?a: b}', 'a.`b`']) {
      assert.throws(() => parse(text, options), /unsupported syntax/u, text);
    }
  });
});

describe('limits', () => {
  const tooDeep = /(?:expression recursion limit exceeded: 250|max recursion depth exceeded)/u;

  it('of length count code points', () => {
    parsed(`'${'🐱'.repeat(MAX_EXPRESSION_CODE_POINTS - 2)}'`);
    assert.throws(() => parsed(`'${'a'.repeat(MAX_EXPRESSION_CODE_POINTS - 1)}'`), /code point size exceeds limit/u);
  });

  it('of nesting are those of cel-go', () => {
    const deepest = MAX_NESTING - 1;
    for (const [open, close] of ['()', '[]'].map((pair) => Array.from(pair))) {
      parsed(`${open?.repeat(deepest)}1${close?.repeat(deepest)}`);
      assert.throws(() => parsed(`${open?.repeat(deepest + 1)}1${close?.repeat(deepest + 1)}`), tooDeep);
    }
    for (const link of ['.b', '[0]', '.f()', ' + 1', ' == 1']) {
      parsed(`a${link.repeat(MAX_NESTING)}`);
      assert.throws(() => parsed(`a${link.repeat(MAX_NESTING + 1)}`), tooDeep, link);
    }
  });

  it('do not apply to balanced chains', () => {
    parsed(Array.from({ length: 5_000 }, () => 'a').join(' && '));
    parsed(`${'!'.repeat(5_000)}a`);
  });

  it('apply to macros that double with each link', () => {
    assert.throws(() => parsed(`a${'.optMap(x, x)'.repeat(100)}`), /expression expands to more than 150000 nodes/u);
  });

  it('apply to brackets that never close', () => {
    for (const bracket of ['(', '[', '{', 'f(', 'a[', 'a.all(x, ', 'T{f: ', '-(', '!(', 'a ? ', 'a ? b : ']) {
      assert.throws(() => parsed(bracket.repeat(20_000)), CelError, bracket);
    }
  });
});
