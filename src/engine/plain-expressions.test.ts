import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type Expression, findExpression, languageReference } from '../cel/index.ts';
import { MacroSet, parse, STANDARD_MACROS } from '../cel/syntax/index.ts';
import { hasPlainExpressions } from './plain-expressions.ts';

const isPlain = (expression: string): boolean => hasPlainExpressions({ validations: [{ expression }] });

const OPTIONS = { macros: new MacroSet(STANDARD_MACROS), optionalSyntax: true, escapedIdentifiers: true };
/** Of the functions that the language has by name, those that plain expressions may call. */
const PLAIN = ['contains', 'endsWith', 'startsWith', 'size', 'string', 'int', 'uint', 'bool'];
const OF_OPTIONALS = ['hasValue', 'or', 'orValue', 'value'];

/** Also with a sign. */
function isLiteral(node: Expression): boolean {
  return node.kind === 'literal' || (node.kind === 'call' && node.function === '-_' && node.args.every(isLiteral));
}

/** Whether a node may take long at once, or asks somebody, by the syntax tree. */
function isHeavy(node: Expression): boolean {
  if (node.kind === 'identifier') {
    return ['authorizer', 'params', 'namespaceObject'].includes(node.name);
  }
  if (node.kind === 'list') {
    return !node.elements.every(isLiteral);
  }
  if (node.kind === 'map' || node.kind === 'struct') {
    return true;
  }
  if (node.kind === 'call' && node.function === '_[_]') {
    return !node.args.slice(1).every(isLiteral);
  }
  if (node.kind !== 'call' || /^[_@!-]/.test(node.function)) {
    return false;
  }
  const [part] = node.args;
  return node.function === 'contains'
    ? !(part?.kind === 'literal' && typeof part.value === 'string' && part.value.length <= 64)
    : ![...PLAIN, ...OF_OPTIONALS].includes(node.function);
}

describe('plain expressions', () => {
  it('are those that policies are mostly made of', () => {
    for (const expression of [
      "object.metadata.name != 'forbidden'",
      'has(object.spec.replicas) && object.spec.replicas <= 5',
      "object.spec.containers.all(c, c.image.startsWith('registry.example/') || !c.image.contains(':latest'))",
      "object.metadata.?labels.?team.orValue('') in ['a', 'b']",
      'request.operation == "DELETE" || object.spec.containers.exists(c, size(c.name) > 3)',
      "'replace(' + object.metadata.name + ', authorizer'",
    ]) {
      assert.equal(isPlain(expression), true, expression);
    }
  });

  it('are none that call any other function of the language', () => {
    const others = languageReference()
      .map(({ name }) => name)
      .filter((name) => ![...PLAIN, ...OF_OPTIONALS].includes(name));
    assert.ok(others.includes('matches') && others.includes('replace') && others.includes('quantity'));
    for (const name of others) {
      assert.equal(isPlain(`object.x.${name}(1)`), false, name);
      assert.equal(isPlain(`${name} \n\t(object.x)`), false, name);
    }
  });

  it('hold lists of literals only, in which no value is twice', () => {
    for (const list of ['[]', '[1, -2.5, 0x1F, 3u]', '[\'a\', "b"]', '[true, null]']) {
      assert.equal(isPlain(`object.a in ${list}`), true, list);
    }
    assert.equal(isPlain("object.metadata.labels['a/b'] == object.items[0]"), true);
    for (const other of [
      '[object]',
      '[[1]]',
      '[object.a, 1]',
      '[?object.?a]',
      '{1: 2}',
      '{}',
      'object[object.a]',
      '[x]',
    ]) {
      assert.equal(isPlain(`object.a == ${other}`), false, other);
    }
  });

  it('are none that ask the cluster, or of settings that do', () => {
    for (const name of ['authorizer', 'params', 'namespaceObject']) {
      assert.equal(isPlain(`${name}.a == 1`), false, name);
    }
    const validations = [{ expression: 'true' }];
    const variables = [{ name: 'a', expression: 'object.a' }];
    assert.equal(hasPlainExpressions({ validations, variables, failurePolicy: 'Ignore' }), true);
    for (const key of ['matchConstraints', 'paramKind', 'paramRef', 'mutations', 'auditAnnotations', 'unknown']) {
      assert.equal(hasPlainExpressions({ validations, [key]: {} }), false, key);
    }
    const heavy = { name: 'a', expression: "object.a.matches('a')" };
    assert.equal(hasPlainExpressions({ validations, variables: [heavy] }), false);
    assert.equal(
      hasPlainExpressions({ validations: [{ expression: 'true', messageExpression: heavy.expression }] }),
      false,
    );
  });

  it('look for nothing but short texts that are known', () => {
    const long = 'a'.repeat(65);
    for (const part of ['object.b', `'${long}'`, `"${long}"`, "'a' + object.b", "'a'+'b'"]) {
      assert.equal(isPlain(`object.a.contains(${part})`), false, part);
    }
    // What looks like a short text is what is between two.
    assert.equal(isPlain("'a.contains(' + string(object.y.contains(object.x)) + ')'"), false);
  });

  it('are never taken for such when the syntax tree says otherwise, however they are written', () => {
    const space = fc.constantFrom('', ' ', '\n', '\t', ' // note\n', '//"\n', '\r\n');
    const names = fc.constantFrom(
      'contains',
      'matches',
      'replace',
      'size',
      'startsWith',
      'string',
      'authorizer',
      'join',
    );
    const inside = fc.array(
      fc.constantFrom('a', "'", '"', '(', ')', '.contains(', 'replace(', '//', '\\', '`', ' + '),
      {
        maxLength: 5,
      },
    );
    const text = fc
      .tuple(fc.constantFrom("'", '"', "'''", '"""', "r'", 'r"', "r'''"), inside)
      .map(([quote, parts]) => `${quote}${parts.join('')}${quote.replace('r', '')}`);
    const { expression } = fc.letrec<{ expression: string }>((tie) => ({
      expression: fc.oneof(
        { maxDepth: 4 },
        text,
        fc.constantFrom('object.a', 'authorizer', 'x', '[1]', '[x]', '{}', '[]', "[ 'a' , -1 ]", 'object.`a-b`'),
        tie('expression').map((held) => `[${held}]`),
        fc.tuple(tie('expression'), tie('expression')).map(([held, index]) => `(${held})[${index}]`),
        fc
          .tuple(tie('expression'), space, names, space, tie('expression'), space)
          .map(([target, a, name, b, argument, c]) => `(${target})${a}.${name}${b}(${c}${argument})`),
        fc.tuple(names, space, tie('expression')).map(([name, a, argument]) => `${name}${a}(${argument})`),
        fc.tuple(tie('expression'), space, tie('expression')).map(([left, a, right]) => `${left}${a}+ ${right}`),
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
