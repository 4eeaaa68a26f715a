import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ObjectVerdict } from '../../engine/index.ts';
import { celSpec, samplePolicy } from '../testing/sample-policies.ts';
import { ObjectJudge } from './object-judge.ts';
import { policyVersion, type PolicyVersion } from './policy-version.ts';

const PODS = { group: '', version: 'v1', resource: 'pods' };

function versionOf(name: string, spec: object): PolicyVersion {
  const { id, definition, match = assert.fail() } = samplePolicy(name, spec);
  return policyVersion({ id, name }, { uid: name, generation: 1 }, { id, definition, match }, {}, undefined);
}

function verdictOf(policy: string, outcome: ObjectVerdict['outcome'] = 'verdict'): ObjectVerdict {
  return { policy, mode: 'protect', outcome, allowed: true, warnings: [], mutates: false };
}

/** A host whose answers wait until they are released. */
class HeldHost {
  readonly asked: string[] = [];
  readonly #held: (() => void)[] = [];
  outcome: ObjectVerdict['outcome'] = 'verdict';
  isHeld = false;

  async evaluate(
    { object }: { readonly object: object },
    { policies = [] }: { readonly policies?: Iterable<string> } = {},
  ): Promise<readonly ObjectVerdict[]> {
    this.asked.push(String((object as { name?: string }).name));
    if (this.isHeld) {
      await new Promise<void>((resolve) => this.#held.push(resolve));
    }
    return [...policies].map((policy) => verdictOf(policy, this.outcome));
  }

  release(): void {
    this.#held.shift()?.();
  }
}

describe('the judge of an auditor', () => {
  const pinned = versionOf('pinned', celSpec('object.spec.hostPID == false'));

  it('evaluates a bounded number at once, those that a change caused first', async () => {
    const host = new HeldHost();
    host.isHeld = true;
    const judge = new ObjectJudge(host, 1);
    const ask = (name: string, isUrgent: boolean): Promise<unknown> =>
      judge.verdicts({ name }, PODS, new Map([[pinned, name]]), isUrgent);
    const all = Promise.all([ask('first', false), ask('scanned', false), ask('changed', true)]);
    for (let released = 0; released < 3; released += 1) {
      while (host.asked.length <= released) {
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      host.release();
    }
    await all;
    assert.deepEqual(host.asked, ['first', 'changed', 'scanned']);
  });

  it('asks once for objects with the same key', async () => {
    const host = new HeldHost();
    const judge = new ObjectJudge(host, 2);
    const [verdict = assert.fail()] = await judge.verdicts({ name: 'a' }, PODS, new Map([[pinned, 'key']]), false);
    judge.share(pinned, PODS, 'key', verdict);
    assert.deepEqual(await judge.verdicts({ name: 'b' }, PODS, new Map([[pinned, 'key']]), false), [verdict]);
    await judge.verdicts({ name: 'c' }, PODS, new Map([[pinned, 'other']]), false);
    assert.deepEqual(host.asked, ['a', 'c']);
    assert.equal(judge.evaluations, 2);
  });

  it('shares nothing of policies that look objects up', async () => {
    const reads = { contextAwareResources: [{ apiVersion: 'v1', kind: 'Service' }] };
    const looking = versionOf('looking', celSpec('object.spec.hostPID == false', reads));
    const host = new HeldHost();
    const judge = new ObjectJudge(host, 2);
    for (const name of ['a', 'b']) {
      const [verdict = assert.fail()] = await judge.verdicts({ name }, PODS, new Map([[looking, 'key']]), false);
      judge.share(looking, PODS, 'key', verdict);
    }
    assert.deepEqual(host.asked, ['a', 'b']);
  });

  it('asks a policy no more that did not end three times in a row', async () => {
    const host = new HeldHost();
    const judge = new ObjectJudge(host, 2);
    const ask = (name: string): Promise<readonly ObjectVerdict[]> =>
      judge.verdicts({ name }, PODS, new Map([[pinned, name]]), false);
    for (const outcome of ['timeout', 'timeout', 'verdict', 'timeout', 'timeout', 'timeout'] as const) {
      host.outcome = outcome;
      assert.equal((await ask(outcome)).length, 1);
    }
    assert.deepEqual(await ask('more'), []);
    assert.equal(host.asked.length, 6);
  });
});
