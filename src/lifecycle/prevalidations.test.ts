import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Waiting } from '../runtime/index.ts';
import type { PrevalidationRequest, PrevalidationResult } from '../control/index.ts';
import { MAX_PREVALIDATIONS, MAX_PREVALIDATIONS_PER_NAMESPACE, Prevalidations } from './prevalidations.ts';

const OK: PrevalidationResult = { ok: true, modules: [] };

function requestOf(name: string, namespace?: string): PrevalidationRequest {
  const metadata = { name, ...(namespace === undefined ? {} : { namespace }) };
  return { kind: 'ClusterAdmissionPolicy', metadata, spec: {} } as PrevalidationRequest;
}

/** Replicas whose responses the test controls. */
class Scene {
  readonly requests: {
    readonly name: string;
    readonly signal: AbortSignal;
    answer(result: PrevalidationResult): void;
  }[] = [];
  readonly requeued: string[] = [];
  readonly failed: string[] = [];
  refusal: unknown;
  readonly prevalidations = new Prevalidations({
    replicas: {
      prevalidate: (_server, { metadata }, signal) => {
        const { promise, resolve } = Promise.withResolvers<PrevalidationResult>();
        this.requests.push({ name: metadata.name, signal, answer: resolve });
        return this.refusal === undefined ? promise : Promise.reject(this.refusal);
      },
    },
    requeue: (policy) => this.requeued.push(policy),
    failed: (policy) => this.failed.push(policy),
  });

  result(policy: string, revision = '1', namespace?: string): PrevalidationResult | undefined {
    return this.prevalidations.result(policy, revision, 'default', requestOf(policy, namespace));
  }
}

describe('Prevalidations', () => {
  it('delays no policy by a slow pre-validation of another one', async () => {
    const scene = new Scene();
    assert.equal(scene.result('slow'), undefined);
    assert.equal(scene.result('quick'), undefined);
    await turn();
    scene.requests[1]?.answer(OK);
    await turn();
    assert.deepEqual(scene.requeued, ['quick']);
    assert.equal(scene.result('quick'), OK);
    assert.equal(scene.result('slow'), undefined);
    assert.equal(scene.requests.length, 2);
  });

  it('delays no namespace by slow pre-validations of another one', async () => {
    const scene = new Scene();
    for (let index = 0; index < 2 * MAX_PREVALIDATIONS; index += 1) {
      scene.result(`slow-${index}`, '1', 'tenant');
    }
    await turn();
    assert.equal(scene.requests.length, MAX_PREVALIDATIONS_PER_NAMESPACE);
    scene.result('other', '1', 'shop');
    scene.result('cluster');
    await turn();
    assert.deepEqual(
      scene.requests.slice(MAX_PREVALIDATIONS_PER_NAMESPACE).map(({ name }) => name),
      ['other', 'cluster'],
    );
    scene.requests[0]?.answer(OK);
    await turn();
    assert.equal(scene.requests.at(-1)?.name, `slow-${MAX_PREVALIDATIONS_PER_NAMESPACE}`);
  });

  it('limits concurrent pre-validations', async () => {
    const scene = new Scene();
    for (let index = 0; index < MAX_PREVALIDATIONS + 2; index += 1) {
      scene.result(`p-${index}`);
    }
    await turn();
    assert.equal(scene.requests.length, MAX_PREVALIDATIONS);
    scene.requests[3]?.answer(OK);
    scene.prevalidations.cancel('p-5');
    await turn();
    assert.equal(scene.requests.length, MAX_PREVALIDATIONS + 1);
  });

  it('aborts the pre-validation of an older revision when a newer one needs one', async () => {
    const scene = new Scene();
    scene.result('p', '1');
    await turn();
    scene.result('p', '2');
    await turn();
    assert.equal(scene.requests[0]?.signal.aborted, true);
    scene.requests[0]?.answer(OK);
    await turn();
    assert.deepEqual(scene.requeued, []);
    scene.requests[1]?.answer(OK);
    await turn();
    assert.equal(scene.result('p', '2'), OK);
  });

  it('aborts and forgets a cancelled pre-validation', async () => {
    const scene = new Scene();
    scene.result('p');
    await turn();
    scene.prevalidations.cancel('p');
    assert.equal(scene.requests[0]?.signal.aborted, true);
    scene.requests[0]?.answer(OK);
    await turn();
    assert.deepEqual(scene.requeued, []);
  });

  it('retries without reporting an error when no replica is available', async () => {
    const scene = new Scene();
    scene.refusal = new Waiting('NoReplicaAnswers', 1);
    scene.result('p');
    while (scene.requeued.length === 0) {
      await turn();
    }
    assert.deepEqual([scene.requeued, scene.failed], [['p'], []]);
  });
});
