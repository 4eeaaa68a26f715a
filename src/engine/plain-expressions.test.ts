import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type Expression, findExpression, languageReference } from '../cel/index.ts';
import { MacroSet, parse, STANDARD_MACROS } from '../cel/syntax/index.ts';
import { hasPlainExpressions } from './plain-expressions.ts';

const isPlain = (expression: string): boolean => hasPlainExpressions({ validations: [{ expression }] });

const OPTIONS = { macros: new MacroSet(STANDARD_MACROS), optionalSyntax: true, escapedIdentifiers: true };
/** Of the functions and operators that the language has, those that plain expressions may call. */
const PLAIN = ['contains', 'endsWith', 'startsWith', 'size'];
const OPERATORS = ['&&', '||', '==', '!=', '<', '<=', '>', '>=', '-', '*', '/', '%'].map((operator) => `_${operator}_`);
const OTHER_OPERATORS = ['!_', '-_', '@in', '_[_]', '@not_strictly_false'];
/** No functions of these names, but macros: such calls do not compile. */
const NO_FUNCTIONS = ['all', 'exists', 'exists_one', 'has'];
/** What loops are made of, beside what is written. */
const OF_LOOPS = ['@result', '_?:_', '_+_', '_?_:_'];

/** Also with a sign. */
function isLiteral(node: Expression): boolean {
  return node.kind === 'literal' || (node.kind === 'call' && node.function === '-_' && node.args.every(isLiteral));
}

/** Whether a node makes a value, may take long at once, or asks somebody, by the syntax tree. */
function isHeavy(node: Expression): boolean {
  switch (node.kind) {
    case 'identifier':
      return ['authorizer', 'params', 'namespaceObject'].includes(node.name);
    case 'list':
      return !node.elements.every(isLiteral);
    case 'map':
    case 'struct':
      return true;
    case 'comprehension':
      return !['all', 'exists', 'exists_one'].includes(node.macro.name);
    case 'call':
      return isHeavyCall(node);
    default:
      return false;
  }
}

function isHeavyCall({ function: name, args }: Extract<Expression, { kind: 'call' }>): boolean {
  const [part] = args;
  if (name === 'contains') {
    return !(part?.kind === 'literal' && typeof part.value === 'string' && part.value.length <= 64);
  }
  if (name === '_[_]') {
    return !args.slice(1).every(isLiteral);
  }
  return ![...PLAIN, ...OPERATORS, ...OTHER_OPERATORS, ...OF_LOOPS, ...NO_FUNCTIONS].includes(name);
}

describe('plain expressions', () => {
  it('are those that simple policies are made of', () => {
    for (const expression of [
      "object.metadata.name != 'forbidden'",
      'has(object.spec.replicas) && object.spec.replicas <= 5',
      "object.spec.containers.all(c, c.image.startsWith('registry.example/') || !c.image.contains(':latest'))",
      "object.metadata.labels['a/b'] in ['a', \"b\"] && !(object.kind in ['Pod'])",
      'request.operation == "DELETE" || object.spec.containers.exists(c, size(c.name) > 3 && c.ports.size() * 2 < 1.5)',
      "object.metadata.name == 'replace(' || 'a' == \"it's + { } ? [x]\"",
    ]) {
      assert.equal(isPlain(expression), true, expression);
    }
    const free = { expression: 'true', message: '[1.1.1.1, `+`', reason: 'Invalid' };
    assert.equal(hasPlainExpressions({ validations: [free], failurePolicy: 'Ignore' }), true);
  });

  it('are none that call any other function of the language', () => {
    const others = languageReference()
      .map(({ name }) => name)
      .filter((name) => !PLAIN.includes(name));
    assert.ok(others.includes('matches') && others.includes('replace') && others.includes('double'));
    for (const name of [...others, 'map', 'filter', 'cel.bind', 'optMap']) {
      assert.equal(isPlain(`object.x.${name}(1)`), false, name);
      assert.equal(isPlain(`${name} \n\t(object.x)`), false, name);
      assert.equal(isPlain(`1.${name}(object.x)`), false, name);
    }
  });

  it('make no values', () => {
    for (const making of [
      'object.a + object.b',
      'object.a ? 1 : 2',
      'object.?a',
      '{}',
      'A{b: 1}',
      '[object]',
      '[[1]]',
      '[x, 1]',
    ]) {
      assert.equal(isPlain(`object.a == ${making}`), false, making);
    }
    for (const index of ['object.b', 'x', '[0]', '0 + 1', "'a' + 'b'"]) {
      assert.equal(isPlain(`object.a[${index}] == 1`), false, index);
    }
  });

  it('are none that ask the cluster, or of settings that do', () => {
    for (const name of ['authorizer', 'params', 'namespaceObject']) {
      assert.equal(isPlain(`${name}.a == 1`), false, name);
    }
    const validations = [{ expression: 'true' }];
    for (const key of [
      'matchConstraints',
      'matchConditions',
      'paramKind',
      'paramRef',
      'mutations',
      'variables',
      'unknown',
    ]) {
      assert.equal(hasPlainExpressions({ validations, [key]: [] }), false, key);
    }
    const heavy = "object.a.matches('a')";
    assert.equal(hasPlainExpressions({ validations: [{ expression: 'true', messageExpression: heavy }] }), false);
    assert.equal(hasPlainExpressions({ validations: [{ expression: 'true', other: heavy }] }), false);
    assert.equal(hasPlainExpressions({ validations: [{ expression: 1 }] }), false);
    assert.equal(hasPlainExpressions({}), false);
  });

  it('look for nothing but short texts that are known', () => {
    const long = 'a'.repeat(65);
    for (const part of ['object.b', `'${long}'`, `"${long}"`, "r'a'", "b'a'", "'a' 'b'"]) {
      assert.equal(isPlain(`object.a.contains(${part})`), false, part);
    }
    // What looks like a short text is what is between two.
    assert.equal(isPlain("'a.contains(' == 'b' && object.y.contains(object.x) && ')' != ''"), false);
  });

  it('are read in a time that grows no faster than their texts', () => {
    for (const text of ['1.', 'a', "'", '"\n', '(', '[', 'a(', '- ', "'a"]) {
      isPlain(text.repeat(300_000));
    }
  });

  it('are never taken for such when the syntax tree says otherwise, however they are written', () => {
    const space = fc.constantFrom('', ' ', '\n', '\t', ' // note\n', '//"\n', '\r\n', '\f');
    const names = fc.constantFrom(
      'contains',
      'matches',
      'size',
      'startsWith',
      'all',
      'exists',
      'filter',
      'authorizer',
      'in',
    );
    const inside = fc.array(
      fc.constantFrom('a', "'", '"', '(', ')', '.contains(', 'replace(', '//', '\\', '`', ' + '),
      {
        maxLength: 5,
      },
    );
    const text = fc
      .tuple(fc.constantFrom("'", '"', "'''", '"""', "r'", 'r"', "b'"), inside)
      .map(([quote, parts]) => `${quote}${parts.join('')}${quote.replace(/[rb]/, '')}`);
    const operator = fc.constantFrom(' + ', '==', ' in ', ' && ', '<', '-', '? 1 :', ' ');
    const { expression } = fc.letrec<{ expression: string }>((tie) => ({
      expression: fc.oneof(
        { maxDepth: 4 },
        text,
        fc.constantFrom(
          'object.a',
          'authorizer',
          'x',
          '[1]',
          '[x]',
          '{}',
          '[]',
          "[ 'a' , -1 ]",
          'object.`a-b`',
          '1.5',
          '2u',
        ),
        tie('expression').map((held) => `[${held}]`),
        fc.tuple(tie('expression'), tie('expression')).map(([held, index]) => `(${held})[${index}]`),
        fc
          .tuple(tie('expression'), space, names, space, tie('expression'), space)
          .map(([target, a, name, b, argument, c]) => `(${target})${a}.${name}${b}(${c}${argument})`),
        fc
          .tuple(tie('expression'), names, tie('expression'))
          .map(([target, name, body]) => `${target}.${name}(x, ${body})`),
        fc.tuple(names, space, tie('expression')).map(([name, a, argument]) => `${name}${a}(${argument})`),
        fc.tuple(tie('expression'), operator, tie('expression')).map(([left, a, right]) => `${left}${a}${right}`),
        fc.tuple(text, names, tie('expression')).map(([left, name, right]) => `${left}.${name}(${right})`),
      ),
    }));
    let parsed = 0;
    let plain = 0;
    fc.assert(
      fc.property(expression, (written) => {
        let tree: Expression;
        try {
          tree = parse(written, OPTIONS).expression;
        } catch {
          return;
        }
        parsed += 1;
        if (isPlain(written)) {
          plain += 1;
          assert.equal(findExpression(tree, isHeavy), undefined, written);
        }
      }),
      { numRuns: 5_000 },
    );
    assert.ok(parsed > 500 && plain > 50, `${parsed} could be parsed, ${plain} are plain`);
  });
});
