import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CelError } from './model/errors.ts';
import { createEnvironment, MAX_KUBERNETES_VERSION, MIN_KUBERNETES_VERSION } from './environment.ts';
import type { FunctionDeclaration } from './model/library.ts';
import { DYN, INT } from './model/type.ts';
import type { EnvironmentOptions } from './environment.ts';

const variables = { object: DYN, count: INT };
const budget = 1_000_000;

function errorOf(run: () => unknown): CelError {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof CelError);
    return error;
  }
  return assert.fail('expected an error');
}

describe('an environment', () => {
  it('can be created for every supported version', () => {
    for (let version = MIN_KUBERNETES_VERSION; version <= MAX_KUBERNETES_VERSION; version += 1) {
      createEnvironment({ kubernetesVersion: version, variables }).compile('object.a == 1 && size("x") == 1');
    }
    for (const version of [MIN_KUBERNETES_VERSION - 1, MAX_KUBERNETES_VERSION + 1, 34.5, Number.NaN]) {
      const error = errorOf(() => createEnvironment({ kubernetesVersion: version, variables }));
      assert.equal(error.code, 'environment-invalid');
    }
  });

  it('has the functions of its version, and no later ones', () => {
    const since: readonly (readonly [expression: string, version: number])[] = [
      ['object.?a.orValue(1) == 1', 28],
      ['1 < 2.0', 28],
      ['[1].all(i, v, true)', 32],
      ['[1].sortBy(x, -x)', 34],
      ['object.`a-b`', 37],
    ];
    for (const [expression, version] of since) {
      createEnvironment({ kubernetesVersion: version, variables }).compile(expression);
      errorOf(() => createEnvironment({ kubernetesVersion: version - 1, variables }).compile(expression));
    }
  });

  it('returns a plain value from orValue before 1.37, and fails from then on', () => {
    const valueIn = (kubernetesVersion: number, expression: string): unknown =>
      createEnvironment({ kubernetesVersion, variables })
        .compile(expression)
        .evaluate({ object: { a: 1 } }, { budget }).value;
    assert.equal(valueIn(36, 'object.a.orValue(2)'), 1);
    const error = errorOf(() => valueIn(37, 'object.a.orValue(2)'));
    assert.deepEqual([error.code, error.message], ['evaluation-failed', 'no such overload']);
    assert.equal(errorOf(() => valueIn(37, 'object.b.orValue(2)')).message, 'no such key: b');
    assert.equal(valueIn(37, 'object.?b.orValue(2)'), 2);
    assert.equal(valueIn(37, 'dyn(optional.of(1)).orValue(2)'), 1);
  });

  it('searches in time that no text multiplies', { timeout: 60_000 }, () => {
    const object = { text: 'a'.repeat(1_500_000), part: `${'a'.repeat(200_000)}b${'a'.repeat(200_000)}` };
    const environment = createEnvironment({ variables });
    for (const expression of [
      'object.text.contains(object.part)',
      'object.text.indexOf(object.part) >= 0',
      'object.text.lastIndexOf(object.part) >= 0',
      'object.text.split(object.part).size() > 1',
      "object.text.replace(object.part, 'x') != object.text",
    ]) {
      // Some minutes each by the search of V8, which nothing interrupts.
      const { value } = environment.compile(expression).evaluate({ object }, { budget: Number.MAX_SAFE_INTEGER });
      assert.equal(value, false, expression);
    }
  });

  it('charges for what each function returns, also one that charges for nothing itself', () => {
    const list = Array.from({ length: 1000 }, () => 1);
    const uncharged: FunctionDeclaration = {
      name: 'uncharged',
      overloads: [{ id: 'uncharged', isMember: false, parameters: [], result: DYN, call: () => list }],
    };
    const library = { name: 'test', since: undefined, functions: [uncharged] };
    const environment = createEnvironment({ variables, libraries: [library] });
    const object = { list: Array.from({ length: 50_000 }, () => 1) };
    for (const expression of [
      'object.list.all(x, uncharged() != null)',
      'object.list.all(x, [object.list, object.list].flatten().size() > 0)',
    ]) {
      const run = (): unknown =>
        environment.compile(expression).evaluate({ object }, { budget: Number.MAX_SAFE_INTEGER });
      assert.match(errorOf(run).message, /work limit exceeded/, expression);
    }
  });

  it('charges for calls that fail after much work, which a loop goes on after', { timeout: 60_000 }, () => {
    const object = { list: Array.from({ length: 5000 }, () => 'a'.repeat(300)) };
    const environment = createEnvironment({ variables });
    for (const call of [
      "'%s'.format([object.list]) == ''",
      "object.list.join('').findAll('').size() < 0",
      'lists.range(1001).map(z, lists.range(1000)).flatten().size() < 0',
    ]) {
      const run = (): unknown =>
        environment
          .compile(`object.list.exists(x, object.list.exists(y, ${call}))`)
          .evaluate({ object }, { budget: Number.MAX_SAFE_INTEGER });
      assert.match(errorOf(run).message, /work limit exceeded/, call);
    }
  });

  it('charges for comparing texts in lists before it compares them', { timeout: 60_000 }, () => {
    const object = { a: `${'a'.repeat(1_500_000)}x`, b: `${'a'.repeat(1_500_000)}y` };
    const environment = createEnvironment({ variables });
    const many = Array.from({ length: 500 }, (_, index) => (index % 2 === 0 ? 'object.a' : 'object.b')).join();
    for (const call of ['sort() == []', "min() == ''", 'isSorted()', "max() == ''"]) {
      const run = (): unknown =>
        environment.compile(`[${many}].${call}`).evaluate({ object }, { budget: Number.MAX_SAFE_INTEGER });
      assert.match(errorOf(run).message, /work limit exceeded/, call);
    }
  });

  it('accepts map literals with keys of any type, which fail only where they are evaluated', () => {
    const environment = createEnvironment({ variables });
    for (const map of ['{[1]: 2}', '{1.5: 2}', '{null: 1}']) {
      assert.equal(environment.compile(`true || ${map}.size() == 1`).evaluate({}, { budget }).value, true, map);
      const error = errorOf(() => environment.compile(map).evaluate({}, { budget }));
      assert.deepEqual([error.code, error.message], ['evaluation-failed', 'unsupported key type'], map);
    }
  });

  it('accepts additional libraries, but no overload twice', () => {
    const answer: EnvironmentOptions['libraries'] = [
      {
        name: 'answers',
        since: undefined,
        functions: [
          {
            name: 'answer',
            overloads: [{ id: 'answer', isMember: false, parameters: [], result: INT, call: () => 42 }],
          },
        ],
      },
    ];
    const environment = createEnvironment({ variables, libraries: answer });
    assert.equal(environment.compile('answer()').evaluate({}, { budget }).value, 42);
    assert.equal(
      errorOf(() => createEnvironment({ variables, libraries: [...answer, ...answer] })).code,
      'environment-invalid',
    );
  });
});

describe('a program', () => {
  const environment = createEnvironment({ kubernetesVersion: 34, variables });

  it('returns its value and cost', () => {
    const program = environment.compile('object.items.map(i, i * count)');
    assert.deepEqual(program.evaluate({ object: { items: [1, 2] }, count: 3 }, { budget }).value, [3, 6]);
    assert.equal(program.text, 'object.items.map(i, i * count)');
    assert.deepEqual(program.resultType, { kind: 'list', element: INT });
  });

  it('computes its estimate once', () => {
    const program = environment.compile('[1, 2].all(x, x < count)');
    assert.deepEqual(program.estimate, { min: 17, max: 23 });
    assert.equal(program.estimate, program.estimate);
  });

  it('reports the position of a failure, if it is known', () => {
    const error = errorOf(() => environment.compile('count / 0 == 1').evaluate({ count: 1 }, { budget }));
    assert.equal(error.code, 'evaluation-failed');
    assert.equal(error.message, 'division by zero');
    for (const issue of error.issues) {
      assert.equal(issue.column, 7);
    }
  });

  it('stops when it costs too much', () => {
    const program = environment.compile('object.all(x, object.all(y, x == y || x != y))');
    const object = Array.from({ length: 100 }, (_, index) => index);
    assert.equal(errorOf(() => program.evaluate({ object }, { budget: 100 })).code, 'cost-exceeded');
    assert.equal(program.evaluate({ object }, { budget }).value, true);
  });
});
