// An unmodified kubectl prints the same on an embedded cluster and on a real one.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { STEPS } from './kubectl-commands.ts';
import type { Step } from './kubectl-commands.ts';
import { DIFFERENCES } from './kubectl-differences.ts';
import { normalForm, normalOutcome } from './kubectl-normal-form.ts';
import { embeddedTarget, realTarget } from './kubectl-target.ts';
import type { KubectlTarget, Outcome } from './kubectl-target.ts';

async function settled(target: KubectlTarget, step: Step): Promise<Outcome> {
  let outcome = await target.run(step);
  for (let attempt = 1; step.isRepeated === true && outcome.code !== 0 && attempt < 20; attempt++) {
    await sleep(500);
    outcome = await target.run(step);
  }
  return outcome;
}

describe('kubectl', { skip: skipWithoutCluster() }, () => {
  let real: KubectlTarget;
  let embedded: KubectlTarget;

  before(async () => {
    [real, embedded] = await Promise.all([realTarget(), embeddedTarget()]);
  });

  after(async () => {
    await Promise.all([real[Symbol.asyncDispose](), embedded[Symbol.asyncDispose]()]);
  });

  for (const [index, step] of STEPS.entries()) {
    const { args, user = 'admin', difference } = step;
    it(`${index + 1}. ${user === 'admin' ? '' : `${user}: `}${args.join(' ')}`, async () => {
      const [expected, actual] = (await Promise.all([settled(real, step), settled(embedded, step)])).map(normalOutcome);
      if (difference === undefined) {
        assert.deepEqual(actual, expected);
        return;
      }
      assert.ok(Object.hasOwn(DIFFERENCES, difference), `no difference is called ${difference}`);
      assert.notDeepEqual(actual, expected, 'there is no difference any more: take it out of the list');
      DIFFERENCES[difference]?.check?.(actual, expected);
    });
  }

  it('prints changes as they happen', async () => {
    const changes = async (target: KubectlTarget): Promise<string> => {
      await target.run({ args: ['create', 'namespace', 'watched'] });
      await target.run({ args: ['create', 'configmap', 'first', '-n', 'watched'] });
      return await target.watch(
        { args: ['get', 'configmaps', '-n', 'watched', '-w', '--output-watch-events'] },
        4,
        async () => {
          await target.run({ args: ['create', 'configmap', 'second', '-n', 'watched'] });
          await target.run({ args: ['label', 'configmap', 'second', '-n', 'watched', 'a=b'] });
          await target.run({ args: ['delete', 'configmap', 'second', '-n', 'watched'] });
        },
      );
    };
    const [expected, actual] = await Promise.all([changes(real), changes(embedded)]);
    assert.equal(normalForm(actual), normalForm(expected));
    assert.equal(actual.split('\n').length, 4);
  });

  it('has documented differences', () => {
    const page = readFileSync(new URL('../../docs/gateway.md', import.meta.url), 'utf8').replaceAll(/\s+/g, ' ');
    for (const { reason } of Object.values(DIFFERENCES)) {
      assert.ok(page.includes(reason), `docs/gateway.md does not say: ${reason}`);
    }
    const used = new Set(STEPS.map(({ difference }) => difference));
    assert.deepEqual(
      Object.keys(DIFFERENCES).filter((name) => !used.has(name)),
      [],
    );
  });
});
