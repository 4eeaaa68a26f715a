import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
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
  it('are found, and reported when that changes', async () => {
    const [one, two] = [rangePolicy('one'), rangePolicy('two')];
    const index = indexOf([one]);
    const redundant = new RedundantPolicies({ index: () => index });
    assert.deepEqual(await redundant.update('shop'), []);
    index.add(two);
    assert.deepEqual(await redundant.update('shop'), [key('two')]);
    assert.match((await redundant.find(key('two')))?.message ?? '', /^changes nothing: one isolates/);
    assert.deepEqual(await redundant.update('shop'), []);
    index.remove(one);
    assert.deepEqual(await redundant.update('shop'), [key('two')]);
    assert.equal(await redundant.find(key('two')), undefined);
  });

  it('are the same whatever the order, in a namespace with 1,000 policies, and no other namespace counts', async () => {
    const policies = Array.from({ length: 1000 }, (_, index) => rangePolicy(`policy-${index}`));
    const others = [rangePolicy('policy-0', 'other')];
    const messages = (list: readonly KubernetesObject[]): Promise<readonly (string | undefined)[]> => {
      const redundant = new RedundantPolicies({ index: () => indexOf(list) });
      return Promise.all(
        policies.map(async ({ metadata: { name = '' } }) => (await redundant.find(key(name)))?.message),
      );
    };
    const found = await messages([...policies, ...others]);
    assert.deepEqual(await messages([...others, ...policies.toReversed()]), found);
    assert.equal(found.filter((message) => message === undefined).length, 1);
  });

  it('are looked for in turns of the event loop', async () => {
    const policies = Array.from({ length: 3000 }, (_, index) => rangePolicy(`policy-${index}`));
    const redundant = new RedundantPolicies({ index: () => indexOf(policies) });
    const comparison = redundant.update('shop').then(() => 'the comparison');
    assert.equal(await Promise.race([comparison, turn('another turn')]), 'another turn');
    assert.equal((await redundant.update('shop')).length, 0);
    await comparison;
  });
});
