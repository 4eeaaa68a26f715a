import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { createLog } from '../../log/index.ts';
import { type ConfigurationPolicy, kubernetesKind, type KubernetesObject } from '../../resources/index.ts';
import { ObjectStore } from '../../runtime/index.ts';
import { asJson } from '../../values/index.ts';
import { MissingKinds } from '../objects/missing-kinds.ts';
import { until } from '../testing/until.ts';
import type { PlannedEvaluation } from './evaluation-jobs.ts';
import { type Evaluated, type EvaluatedSpec, EvaluationLanes } from './evaluation-lanes.ts';
import { EvaluationObjects } from './evaluation-objects.ts';

/** Takes longer than any policy may. */
const SLOW = '{{ range $i := until 900 }}{{ range $j := until 900 }}{{ end }}{{ end }}x';
/** Takes more memory than a thread has: rendered texts stay until the end. */
const LARGE = '{{ repeat 4000000 "x" }}';

const configMap = (name: string, value: string): KubernetesObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default' },
  data: { value },
});

function policy(name: string, objects: readonly KubernetesObject[], generation = 1): ConfigurationPolicy {
  return {
    apiVersion: 'policy.open-cluster-management.io/v1',
    kind: 'ConfigurationPolicy',
    metadata: { name, namespace: 'local-cluster', generation },
    spec: {
      remediationAction: 'inform',
      pruneObjectBehavior: 'None',
      'object-templates': objects.map((object) => ({
        complianceType: 'musthave',
        recreateOption: 'None',
        objectDefinition: asJson(object),
      })),
    },
  };
}

const many = (name: string, value: string): ConfigurationPolicy =>
  policy(
    name,
    Array.from({ length: 2_000 }, (_, index) => configMap(`object-${index}`, value)),
  );
const ordinary = (name: string): ConfigurationPolicy => policy(name, [configMap('a', '{{ "x" }}')]);

describe('the threads of governance policies', () => {
  let evaluations: EvaluationLanes;
  let stop: AbortController;
  let running: Promise<void>;
  const woken: string[] = [];

  beforeEach(() => {
    stop = new AbortController();
    evaluations = new EvaluationLanes(createLog({ level: 'silent' }), { ordinaryMs: 300, slowMs: 1_000 });
    running = evaluations.start(stop.signal);
    woken.length = 0;
  });
  afterEach(async () => {
    stop.abort();
    await running;
  });

  async function evaluate(of: ConfigurationPolicy, owner = 'tenant'): Promise<Evaluated<PlannedEvaluation>> {
    const { name = '', generation } = of.metadata;
    const key = { namespace: 'local-cluster', name };
    const spec: EvaluatedSpec = { kind: 'ConfigurationPolicy', key, generation, owner };
    const work = {
      run: async (run: Parameters<Parameters<EvaluationLanes['evaluate']>[1]['run']>[0], signal: AbortSignal) => {
        const objects = new EvaluationObjects({
          key,
          mappings: { find: async (apiVersion, kind) => kubernetesKind(apiVersion, kind) },
          reader: {
            open: async () => ({ get: ({ name: one }) => configMap(one, 'x'), list: () => [] }),
            use: () => undefined,
            add: () => undefined,
          },
          missing: new MissingKinds(),
          namespaces: () => [],
        });
        return await objects.evaluate(() => run('plan', { policy: of, hasFullDiffs: false }, objects), signal);
      },
      wake: () => woken.push(name),
    };
    return await evaluations.evaluate(spec, work, stop.signal);
  }

  it('let ordinary policies pass a slow one, and this thread go on', async () => {
    assert.deepEqual(await evaluate(many('slow', SLOW)), { state: 'later', afterMs: undefined });
    assert.equal((await evaluate(ordinary('first'))).state, 'done');
    assert.deepEqual(woken, [], 'the slow policy is still evaluated');
    let turns = 0;
    let isDone = false;
    const counting = (async () => {
      for (; !isDone; turns += 1) {
        await turn();
      }
    })();
    const names = Array.from({ length: 200 }, (_, index) => `policy-${index}`);
    const results = await Promise.all(names.map((name) => evaluate(ordinary(name))));
    isDone = true;
    await counting;
    assert.ok(results.every(({ state }) => state === 'done'));
    assert.ok(turns >= 200, `${turns} turns of the event loop`);
  });

  it('end a policy that takes too long, and try it again later, but at once when it was edited', async () => {
    const slow = many('slow', SLOW);
    await evaluate(slow);
    await until(() => woken.includes('slow'));
    const ended = await evaluate(slow);
    assert.ok(ended.state === 'ended');
    assert.match(ended.reason, /^the policy takes too long to evaluate/);
    assert.equal(ended.retryAfterMs, 10_000);
    const again = await evaluate(slow);
    assert.ok(again.state === 'later' && again.afterMs !== undefined && again.afterMs > 5_000);
    const edited = policy('slow', [configMap('a', '{{ "x" }}')], 2);
    assert.deepEqual(await evaluate(edited), { state: 'later', afterMs: undefined });
    await until(() => woken.length === 2);
    assert.equal((await evaluate(edited)).state, 'done');
    assert.equal((await evaluate(edited)).state, 'done', 'it is ordinary again');
  });

  it('lose no other policy when one uses up the memory', async () => {
    const [first, large, last] = await Promise.all([
      evaluate(ordinary('first'), 'a'),
      evaluate(many('large', LARGE), 'b'),
      evaluate(ordinary('last'), 'c'),
    ]);
    assert.deepEqual([first.state, last.state], ['done', 'done']);
    const outcome = large.state === 'later' ? await settled('large') : large;
    assert.ok(outcome.state === 'ended');
    assert.match(outcome.reason, /^the policy takes too much memory/);
    assert.equal((await evaluate(ordinary('next'), 'b')).state, 'done');
  });

  it('end a policy whose result is too large for this thread', async () => {
    const texts = Array.from({ length: 6 }, (_, index) => configMap(`object-${index}`, LARGE));
    const texting = policy('texts', texts);
    let outcome = await evaluate(texting);
    if (outcome.state === 'later') {
      await until(() => woken.includes('texts'));
      outcome = await evaluate(texting);
    }
    assert.ok(outcome.state === 'ended');
    assert.match(outcome.reason, /^the policy takes too much memory/);
  });

  async function settled(name: string): Promise<Evaluated<PlannedEvaluation>> {
    await until(() => woken.includes(name));
    return await evaluate(many(name, LARGE), 'b');
  }

  it('let an owner whose policies are slow wait, and no other owner', async () => {
    for (const name of ['a', 'b', 'c']) {
      assert.equal((await evaluate(many(name, SLOW), 'slow')).state, 'later');
    }
    assert.equal((await evaluate(ordinary('new'), 'slow')).state, 'later', 'nothing is known of it');
    assert.equal((await evaluate(ordinary('new-too'), 'other')).state, 'done');
  });

  it('are ready before the first evaluation, from the first policy to the last', async () => {
    const threads = new Set<Worker>();
    const started = (thread: Worker): void => {
      threads.add(thread);
      thread.once('exit', () => threads.delete(thread));
    };
    process.on('worker', started);
    const policies = new ObjectStore<KubernetesObject>({});
    const end = evaluations.readyFor([policies]);
    await turn();
    assert.equal(threads.size, 0, 'there is no policy');
    policies.replace([configMap('a', 'x'), configMap('b', 'x')]);
    await until(() => threads.size === 1);
    policies.replace([configMap('b', 'x')]);
    await turn();
    assert.equal(threads.size, 1);
    policies.replace([]);
    await until(() => threads.size === 0);
    process.off('worker', started);
    end();
  });

  it('evaluate again when something changed meanwhile', async () => {
    const slow = many('slow', SLOW);
    await evaluate(slow);
    await evaluate(slow);
    await until(() => woken.length === 1);
    assert.equal((await evaluate(slow)).state, 'ended');
    await until(() => woken.length === 2);
  });
});
