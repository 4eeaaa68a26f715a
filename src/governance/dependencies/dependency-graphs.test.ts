import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { GraphPolicy } from './index.ts';
import { fittingParts } from './dependency-graphs.ts';

function part(name: string, count: number): GraphPolicy {
  const requirements = Array.from({ length: count }, (_, index) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    namespace: 'default',
    name: `c${index}`,
    compliance: 'Compliant',
  }));
  const template = { apiVersion: 'v1', kind: 'Check', name, ignorePending: false, requirements };
  return { namespace: 'policies', name, isPlaced: true, templates: [template], problems: [] };
}

describe('the Policies of a graph', () => {
  it('are all of them, in their order, if their dependencies fit', () => {
    const parts = [part('b', 5), part('a', 3)];
    assert.deepEqual(fittingParts(parts, 8), parts);
  });

  it('are otherwise those with the fewest dependencies', () => {
    const names = fittingParts([part('huge', 100), part('b', 4), part('none', 0), part('a', 4)], 10).map(
      ({ name }) => name,
    );
    assert.deepEqual(names, ['b', 'none', 'a']);
  });
});
