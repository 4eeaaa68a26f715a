import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject, ObjectVerdict } from '../engine/index.ts';
import type { HostedPolicy } from '../evaluation/index.ts';
import { SharedVerdicts } from './shared-verdicts.ts';
import { celSpec, samplePolicy } from './testing/sample-policies.ts';

const PODS = { group: '', version: 'v1', resource: 'pods' };
const IDS = ['image', 'name'];

function hosted(id: string, expression: string): HostedPolicy {
  const { definition, match } = samplePolicy(id, celSpec(expression));
  assert.ok(match);
  return { id, definition, match };
}

/** One reads a field that replicas share, the other one that they do not. */
const POLICIES = [hosted('image', "object.spec.image == 'a'"), hosted('name', "object.metadata.name != 'a'")];

function pod(name: string, image = 'a'): JsonObject {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'shop' }, spec: { image } };
}

function verdict(policy: string, outcome: ObjectVerdict['outcome'] = 'verdict'): ObjectVerdict {
  return { policy, mode: 'protect', outcome, allowed: true, warnings: [], mutates: false };
}

/** Verdicts of a host that answers when it is told to. */
function slowHost(outcome?: ObjectVerdict['outcome']): {
  readonly verdicts: SharedVerdicts;
  readonly asked: string[][];
  readonly answer: PromiseWithResolvers<void>;
} {
  const asked: string[][] = [];
  const answer = Promise.withResolvers<void>();
  const evaluate = async (
    _object: unknown,
    { policies = [] }: { readonly policies?: Iterable<string> } = {},
  ): Promise<readonly ObjectVerdict[]> => {
    const ids = [...policies];
    asked.push(ids);
    await answer.promise;
    return ids.map((id) => verdict(id, outcome));
  };
  return { verdicts: new SharedVerdicts({ evaluate }, POLICIES), asked, answer };
}

describe('shared verdicts', () => {
  it('judge objects that are alike for a policy once, also those that come while the first is judged', async () => {
    const { verdicts, asked, answer } = slowHost();
    const underWay = [verdicts.of(pod('a'), PODS, IDS), verdicts.of(pod('b'), PODS, IDS)];
    answer.resolve();
    const all = await Promise.all([
      ...underWay,
      verdicts.of(pod('c'), PODS, IDS),
      verdicts.of(pod('d', 'b'), PODS, IDS),
    ]);
    assert.deepEqual(asked, [['image', 'name'], ['name'], ['name'], ['image', 'name']]);
    for (const one of all) {
      assert.deepEqual(one.map(({ policy }) => policy).toSorted(), IDS);
    }
  });

  it('ask again for what failed', async () => {
    const { verdicts, asked, answer } = slowHost('failed');
    const underWay = [verdicts.of(pod('a'), PODS, ['image']), verdicts.of(pod('b'), PODS, ['image'])];
    answer.resolve();
    assert.deepEqual((await Promise.all(underWay)).flat(), [verdict('image', 'failed'), verdict('image', 'failed')]);
    await verdicts.of(pod('c'), PODS, ['image']);
    assert.deepEqual(asked, [['image'], ['image']]);
  });

  it('ask again after an error, of which all that wait are told', async () => {
    const { verdicts, asked, answer } = slowHost();
    const underWay = [verdicts.of(pod('a'), PODS, ['image']), verdicts.of(pod('b'), PODS, IDS)];
    answer.reject(new Error('overloaded'));
    for (const { status } of await Promise.allSettled(underWay)) {
      assert.equal(status, 'rejected');
    }
    await assert.rejects(verdicts.of(pod('c'), PODS, ['image']), /overloaded/);
    assert.deepEqual(asked, [['image'], ['name'], ['image']]);
  });
});
