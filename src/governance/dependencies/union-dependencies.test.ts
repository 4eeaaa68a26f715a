import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CLUSTER, dependency } from './testing/dependency-scene.ts';
import { unionDependencies } from './union-dependencies.ts';

describe('unionDependencies', () => {
  it('joins both lists, and keeps equal dependencies once', () => {
    const { requirements, conflict } = unionDependencies(
      [dependency('a.b'), dependency('a.c', 'Pending')],
      [dependency('a.b'), dependency('a.d')],
      CLUSTER,
    );
    assert.deepEqual(
      requirements.map(({ name }) => name),
      ['a.b', 'a.c', 'a.d'],
    );
    assert.equal(conflict, undefined);
  });

  it('tells versions and namespaces of an object apart', () => {
    const other = { apiVersion: 'example.com/v1', kind: 'Thing' };
    const [a, b, c] = [
      dependency('x', 'Compliant', { ...other, namespace: 'one' }),
      dependency('x', 'Pending', { ...other, namespace: 'two' }),
      dependency('x', 'NonCompliant', { ...other, namespace: 'one', apiVersion: 'example.com/v2' }),
    ];
    assert.deepEqual(unionDependencies([a, b], [c], CLUSTER), { requirements: [a, b, c], conflict: undefined });
  });

  const two = [dependency('a.b'), dependency('a.b', 'NonCompliant')] as const;
  for (const [name, topLevel, extra] of [
    ['between the lists', [two[0]], [two[1]]],
    ['within the extra list', [], two],
    ["within the policy's list", two, []],
  ] as const) {
    it(`reports a conflict ${name}`, () => {
      assert.equal(
        unionDependencies(topLevel, extra, CLUSTER).conflict,
        'dependency on a.b has conflicting compliance states',
      );
    });
  }

  it('finds conflicts of objects that only look different', () => {
    const [a, b] = [dependency('a.b', 'Compliant', { namespace: 'x' }), dependency('a.b', 'Pending')];
    assert.notEqual(unionDependencies([a, b], [], CLUSTER).conflict, undefined);
  });
});
