import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ownerOfNamespace } from './owner-of-namespace.ts';

const NAMESPACES = Array.from({ length: 3_000 }, (_, index) => (index === 0 ? '' : `team-${index}`));

describe('ownerOfNamespace', () => {
  it('gives each member about the same number of namespaces', () => {
    const owners = Map.groupBy(NAMESPACES, (namespace) => ownerOfNamespace(namespace, ['a', 'b', 'c']));
    const sizes = [...owners.values()].map(({ length }) => length);
    assert.equal(sizes.length, 3);
    sizes.forEach((size) => assert.ok(size > 850 && size < 1_150, String(sizes)));
  });

  it('does not depend on the order of members', () => {
    for (const namespace of NAMESPACES.slice(0, 100)) {
      assert.equal(ownerOfNamespace(namespace, ['a', 'b', 'c']), ownerOfNamespace(namespace, ['c', 'a', 'b']));
    }
  });

  it('moves only the namespaces of a member that goes', () => {
    for (const namespace of NAMESPACES) {
      const before = ownerOfNamespace(namespace, ['a', 'b', 'c', 'd']);
      if (before !== 'd') {
        assert.equal(ownerOfNamespace(namespace, ['a', 'b', 'c']), before);
      }
    }
  });

  it('stays the same in all versions, which run side by side during an upgrade', () => {
    const owners = NAMESPACES.slice(0, 12).map((namespace) => ownerOfNamespace(namespace, ['a', 'b', 'c']));
    assert.equal(owners.join(''), 'acaaccabbaab');
  });
});
