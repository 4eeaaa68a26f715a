import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Waiting } from '../runtime/index.ts';
import type { PrevalidationRequest, PrevalidationResult } from '../control/index.ts';
import { MAX_TRIALS, MAX_TRIALS_OF_NAMESPACE, Prevalidations } from './prevalidations.ts';

const OK: PrevalidationResult = { ok: true, modules: [] };

function requestOf(name: string, namespace?: string): PrevalidationRequest {
  const metadata = { name, ...(namespace === undefined ? {} : { namespace }) };
  return { kind: 'ClusterAdmissionPolicy', metadata, spec: {} } as unknown as PrevalidationRequest;
}

/** Replicas that answer when the test says so. */
class Scene {
  readonly asked: { readonly name: string; readonly signal: AbortSignal; answer(result: PrevalidationResult): void }[] =
    [];
  readonly done: string[] = [];
  readonly failed: string[] = [];
  refusal: unknown;
  readonly trials = new Prevalidations({
    replicas: {
      prevalidate: (_server, { metadata }, signal) => {
        const { promise, resolve } = Promise.withResolvers<PrevalidationResult>();
        this.asked.push({ name: metadata.name, signal, answer: resolve });
        return this.refusal === undefined ? promise : Promise.reject(this.refusal);
      },
    },
    done: (policy) => this.done.push(policy),
    failed: (policy) => this.failed.push(policy),
  });

  result(policy: string, revision = '1', namespace?: string): PrevalidationResult | undefined {
    return this.trials.result(policy, revision, 'default', requestOf(policy, namespace));
  }
}

describe('Prevalidations', () => {
  it('has a slow trial hold nothing but its own policy', async () => {
    const scene = new Scene();
    assert.equal(scene.result('slow'), undefined);
    assert.equal(scene.result('quick'), undefined);
    await turn();
    scene.asked[1]?.answer(OK);
    await turn();
    assert.deepEqual(scene.done, ['quick']);
    assert.equal(scene.result('quick'), OK);
    assert.equal(scene.result('slow'), undefined);
    assert.equal(scene.asked.length, 2);
  });

  it('has slow trials of one namespace hold nothing of others', async () => {
    const scene = new Scene();
    for (let index = 0; index < 2 * MAX_TRIALS; index += 1) {
      scene.result(`slow-${index}`, '1', 'tenant');
    }
    await turn();
    assert.equal(scene.asked.length, MAX_TRIALS_OF_NAMESPACE);
    scene.result('other', '1', 'shop');
    scene.result('cluster');
    await turn();
    assert.deepEqual(
      scene.asked.slice(MAX_TRIALS_OF_NAMESPACE).map(({ name }) => name),
      ['other', 'cluster'],
    );
    scene.asked[0]?.answer(OK);
    await turn();
    assert.equal(scene.asked.at(-1)?.name, `slow-${MAX_TRIALS_OF_NAMESPACE}`);
  });

  it('makes no more trials at once than a replica takes', async () => {
    const scene = new Scene();
    for (let index = 0; index < MAX_TRIALS + 2; index += 1) {
      scene.result(`p-${index}`);
    }
    await turn();
    assert.equal(scene.asked.length, MAX_TRIALS);
    scene.asked[3]?.answer(OK);
    scene.trials.cancel('p-5');
    await turn();
    assert.equal(scene.asked.length, MAX_TRIALS + 1);
  });

  it('begins anew for a newer revision, and ends the trial of the older one', async () => {
    const scene = new Scene();
    scene.result('p', '1');
    await turn();
    scene.result('p', '2');
    await turn();
    assert.equal(scene.asked[0]?.signal.aborted, true);
    scene.asked[0]?.answer(OK);
    await turn();
    assert.deepEqual(scene.done, []);
    scene.asked[1]?.answer(OK);
    await turn();
    assert.equal(scene.result('p', '2'), OK);
  });

  it('forgets a trial that nobody wants to know of', async () => {
    const scene = new Scene();
    scene.result('p');
    await turn();
    scene.trials.cancel('p');
    assert.equal(scene.asked[0]?.signal.aborted, true);
    scene.asked[0]?.answer(OK);
    await turn();
    assert.deepEqual(scene.done, []);
  });

  it('tries again later when no replica can be asked, and tells of nothing', async () => {
    const scene = new Scene();
    scene.refusal = new Waiting('NoReplicaAnswers', 1);
    scene.result('p');
    while (scene.done.length === 0) {
      await turn();
    }
    assert.deepEqual([scene.done, scene.failed], [['p'], []]);
  });
});
