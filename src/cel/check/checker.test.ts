import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CelError } from '../model/errors.ts';
import { createEnvironment } from '../environment.ts';
import type { EnvironmentOptions } from '../environment.ts';
import { DYN, INT, listOf, STRING, struct } from '../model/type.ts';
import type { Expression } from '../model/ast.ts';
import { escapeField, formatType, MUTATION_TYPES } from './index.ts';
import { nearestName } from './suggestion.ts';

const variables = { object: DYN, 'request.name': STRING, request: DYN, names: listOf(STRING), count: INT };

function compile(text: string, options: Partial<EnvironmentOptions> = {}): ReturnType<typeof tryCompile> {
  return tryCompile(text, { kubernetesVersion: 34, variables, ...options });
}

/** Creates any struct: only the check matters here. */
const structs = { has: () => true, create: () => ({}) };

function tryCompile(text: string, options: EnvironmentOptions): { type: string; expression: Expression } {
  const { checked } = createEnvironment({ ...options, structs }).compile(text);
  return { type: formatType(checked.resultType), expression: checked.expression };
}

function errorOf(text: string, options: Partial<EnvironmentOptions> = {}): CelError {
  try {
    compile(text, options);
  } catch (error) {
    assert.ok(error instanceof CelError);
    assert.equal(error.code, 'check-failed');
    return error;
  }
  return assert.fail(`expected an error of ${text}`);
}

describe('names', () => {
  it('with dots are looked up as variables before selections', () => {
    const { expression, type } = compile('request.name');
    assert.equal(type, 'string');
    assert.ok(expression.kind === 'identifier');
    assert.equal(expression.name, 'request.name');
    assert.equal(compile('request.operation').expression.kind, 'select');
  });

  it('are shadowed by the variables of macros, unless they have a leading dot', () => {
    assert.equal(
      compile('names.map(request, request.name)', { variables: { ...variables, names: DYN } }).type,
      'list(dyn)',
    );
    assert.equal(compile('names.map(count, .count)').type, 'list(int)');
    assert.match(
      errorOf('names.map(request, request.name)').message,
      /type 'string' does not support field selection/u,
    );
    const { expression } = compile('[1].all(object, .object == object)');
    assert.match(JSON.stringify(expression), /"name":"\.object"/u);
  });

  it('of inherited properties of objects are undeclared', () => {
    for (const name of ['constructor', '__proto__', 'toString', 'hasOwnProperty']) {
      assert.match(errorOf(name).message, /undeclared reference/u);
      assert.match(errorOf(`${name}(1)`).message, /undeclared reference/u);
      assert.match(errorOf(`${name}{a: 1}`).message, /undeclared reference/u);
    }
  });
});

describe('hints', () => {
  const hints: readonly (readonly [text: string, hint: string])[] = [
    ['objekt.spec', "did you mean 'object'?"],
    ['sise(names)', "did you mean 'size'?"],
    ['names[0].startWith("a")', "did you mean 'startsWith'?"],
    ['names[0].startswith("a")', "did you mean 'startsWith'?"],
    ['names.all(x)', "macro 'all' takes 2 or 3 arguments"],
    ['size', "'size' is a function: call it"],
    ['count + 1.5', 'numbers of different types do not mix: convert one with int(...), uint(...) or double(...)'],
    ['count - names', 'candidates: double - double -> double, duration - duration -> duration'],
    ['startsWith(names[0], "a")', 'it is called as value.startsWith(...)'],
    [
      '[count, "a"]',
      'elements of a list, and keys and values of a map, have one type: put dyn(...) around each to mix them',
    ],
    ['JSONPatch{opp: "add"}', "did you mean 'op'?"],
  ];

  for (const [text, hint] of hints) {
    it(`help with ${text}`, () => {
      const all = errorOf(text, { types: MUTATION_TYPES }).issues.flatMap((issue) => issue.hints);
      assert.ok(
        all.some((one) => one.startsWith(hint.slice(0, 30))),
        `expected ${hint}, got ${all.join(' / ')}`,
      );
    });
  }

  it('name the version that added a function', () => {
    assert.match(
      errorOf('isIP("1.2.3.4")', { kubernetesVersion: 29 }).message,
      /Kubernetes allows 'isIP' in new expressions since 1\.31/u,
    );
    assert.equal(compile('isIP("1.2.3.4")', { kubernetesVersion: 30 }).type, 'bool');
  });

  it('name the candidate with the smallest edit distance', () => {
    assert.equal(nearestName('conatiners', ['container', 'containers', 'volumes']), 'containers');
    assert.equal(nearestName('x', ['abc', 'def']), undefined);
  });
});

describe('types', () => {
  it('of mutations have any field', () => {
    const options = { types: MUTATION_TYPES };
    assert.equal(compile('Object{spec: Object.spec{replicas: count}}', options).type, 'Object');
    assert.equal(compile('[JSONPatch{op: "add", path: "/a", value: count}]', options).type, 'list(JSONPatch)');
    assert.match(
      errorOf('JSONPatch{op: 1}', options).message,
      /expected type of field 'op' is 'string' but provided type is 'int'/u,
    );
  });

  it('that grow with each macro are rejected before they are too large', () => {
    compile(`[[1]]${'.map(x, [{1: x}].map(y, {y: y}))'.repeat(3)}`);
    assert.match(
      errorOf(`[[1]]${'.map(x, [{1: x}].map(y, {y: y}))'.repeat(30)}`).message,
      /the type of the expression has more than 1000 parts/u,
    );
  });

  it('that are large only through type variables are rejected', () => {
    const names = Array.from({ length: 60 }, (_, index) => `v${index}`);
    const open = names.map((name) => `[[]].all(${name}, `).join('');
    const links = names.slice(1).map((name, index) => `[v${index}, [{${name}: ${name}}]].size() > 0`);
    const text = `${open}${links.join(' && ')} && v0.size() == 0${')'.repeat(names.length)}`;
    assert.match(errorOf(text).message, /the types? of the expression (?:are too large|has more than)/u);
  });

  it('are limited to types of the environment', () => {
    assert.match(errorOf('Pod{}').message, /undeclared reference to 'Pod'/u);
    const types = {
      findStruct: (name: string) => (name === 'Pod' ? struct(name) : undefined),
      fieldType: () => undefined,
    };
    assert.equal(compile('Pod{}', { types }).type, 'Pod');
    assert.match(errorOf('Pod{a: 1}', { types }).message, /undefined field 'a'/u);
  });
});

describe('errors', () => {
  it('are all reported in source order', () => {
    const { issues } = errorOf('a + b && count == "x" && [1].all(x, y)');
    assert.deepEqual(
      issues.map((issue) => issue.column),
      [1, 5, 16, 37],
    );
    assert.ok(issues.every((issue) => issue.expressionId !== undefined));
  });

  it('stop after a hundred', () => {
    assert.equal(errorOf(Array.from({ length: 500 }, (_, index) => `v${index}`).join(' && ')).issues.length, 100);
  });
});

describe('names of fields', () => {
  const names: readonly (readonly [name: string, escaped: string | undefined])[] = [
    ['containers', 'containers'],
    ['namespace', '__namespace__'],
    ['a-b', 'a__dash__b'],
    ['a.b/c', 'a__dot__b__slash__c'],
    ['__a', '__underscores__a'],
    ['a_b', 'a_b'],
    ['1st', undefined],
    ['', undefined],
    ['a b', undefined],
    ['é', undefined],
  ];

  for (const [name, escaped] of names) {
    it(`escape ${JSON.stringify(name)}`, () => assert.equal(escapeField(name), escaped));
  }
});
