import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubernetesObject } from '../resources/index.ts';
import { ObjectIndex } from '../runtime/index.ts';
import { RedundantPolicies } from './redundant-policies.ts';
import { rangePolicy } from './testing/sample-cluster.ts';

function indexOf(policies: readonly KubernetesObject[]): ObjectIndex {
  const index = new ObjectIndex(({ metadata }: KubernetesObject) => [metadata.namespace ?? '']);
  for (const policy of policies) {
    index.add(policy);
  }
  return index;
}

const key = (name: string) => ({ namespace: 'shop', name });

describe('redundant policies', () => {
  it('are found, and reported when that changes', () => {
    const [one, two] = [rangePolicy('one'), rangePolicy('two')];
    const index = indexOf([one]);
    const redundant = new RedundantPolicies({ index: () => index });
    assert.deepEqual(redundant.update('shop'), []);
    index.add(two);
    assert.deepEqual(redundant.update('shop'), [key('two')]);
    assert.match(redundant.find(key('two'))?.message ?? '', /^changes nothing: one isolates/);
    assert.deepEqual(redundant.update('shop'), []);
    index.remove(one);
    assert.deepEqual(redundant.update('shop'), [key('two')]);
    assert.equal(redundant.find(key('two')), undefined);
  });

  it('are the same whatever the order, in a namespace with 1,000 policies, and no other namespace counts', () => {
    const policies = Array.from({ length: 1000 }, (_, index) => rangePolicy(`policy-${index}`));
    const others = [rangePolicy('policy-0', 'other')];
    const messages = (list: readonly KubernetesObject[]): readonly (string | undefined)[] => {
      const redundant = new RedundantPolicies({ index: () => indexOf(list) });
      return policies.map(({ metadata: { name = '' } }) => redundant.find(key(name))?.message);
    };
    const found = messages([...policies, ...others]);
    assert.deepEqual(messages([...others, ...policies.toReversed()]), found);
    assert.equal(found.filter((message) => message === undefined).length, 1);
  });
});
