import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Observation } from '../../engine/index.ts';
import { memoryBudget } from '../../evaluation/index.ts';
import { PolicyMemory } from '../policies/policy-memory.ts';
import { MAX_RESOURCES, ServerMetrics } from './metrics.ts';

const observation: Observation = {
  policy: 'p',
  mode: 'protect',
  route: 'validate',
  outcome: 'verdict',
  kind: 'Pod',
  namespace: 'shop',
  operation: 'CREATE',
  accepted: true,
  mutated: false,
};
const create = (): ServerMetrics =>
  new ServerMetrics({
    waiting: () => 0,
    held: () => 0,
    slowOwners: () => 0,
    phases: () => [],
    memory: () => new PolicyMemory(memoryBudget(2 ** 30, 2), () => 'team'),
  });

/** The counted evaluations, without the metric's name. */
async function evaluations(metrics: ServerMetrics): Promise<string[]> {
  const lines = (await metrics.text()).split('\n');
  return lines.filter((line) => line.startsWith('kubewarden_policy_evaluations_total{'));
}

describe('labels from reviews', () => {
  it('are kept when they are valid Kubernetes names', async () => {
    const metrics = create();
    metrics.reviewed('validate', [{ observation, evaluationMs: 1 }], 1);
    assert.match(
      (await evaluations(metrics)).join(),
      /resource_kind="Pod".*resource_namespace="shop".*_operation="CREATE"/,
    );
  });

  it('are "other" for codes that are not HTTP status codes', async () => {
    const metrics = create();
    metrics.reviewed('validate', [{ observation: { ...observation, errorCode: 99_999 }, evaluationMs: 1 }], 1);
    assert.match((await evaluations(metrics)).join(), /error_code="other"/);
  });

  it('are limited in number', async () => {
    const metrics = create();
    for (let index = 0; index < MAX_RESOURCES + 100; index += 1) {
      metrics.reviewed('validate', [{ observation: { ...observation, namespace: `n${index}` }, evaluationMs: 1 }], 1);
    }
    const lines = await evaluations(metrics);
    assert.ok(lines.length <= MAX_RESOURCES + 1, `${lines.length}`);
    assert.match(lines.join('\n'), /resource_namespace="other"/);
  });
});

describe('evaluations', () => {
  it('with equal labels are counted together, from all workers', async () => {
    const metrics = create();
    metrics.reviewed('validate', [{ observation, evaluationMs: 3 }], 4);
    metrics.reviewed('validate', [{ observation, evaluationMs: 30 }], 40);
    metrics.reviewed('validate', [{ observation: { ...observation }, evaluationMs: 300 }], 400);
    metrics.reviewed(
      'validate',
      [{ observation: { ...observation, accepted: false, errorCode: 403 }, evaluationMs: 3 }],
      4,
    );
    const lines = await evaluations(metrics);
    assert.deepEqual(
      lines.map((line) => line.split(' ').at(-1)),
      ['3', '1'],
    );
    const text = await metrics.text();
    const latency = (suffix: string): string | undefined =>
      new RegExp(`^kubewarden_policy_evaluation_latency_milliseconds_${suffix} (.*)$`, 'm').exec(text)?.[1];
    const labels = 'policy_name="p",policy_mode="protect"';
    assert.equal(latency(`bucket{le="2",${labels}}`.replaceAll(/[{}]/g, String.raw`\$&`)), '0');
    assert.equal(latency(`bucket{le="5",${labels}}`.replaceAll(/[{}]/g, String.raw`\$&`)), '2');
    assert.equal(latency(`bucket{le="+Inf",${labels}}`.replaceAll(/[{}+]/g, String.raw`\$&`)), '4');
    assert.equal(latency(`sum{${labels}}`.replaceAll(/[{}]/g, String.raw`\$&`)), '336');
    assert.equal(latency(`count{${labels}}`.replaceAll(/[{}]/g, String.raw`\$&`)), '4');
  });

  it('of a removed policy are removed, and counted from zero when it returns', async () => {
    const metrics = create();
    const other = { ...observation, policy: 'other' };
    for (const one of [observation, observation, other]) {
      metrics.reviewed('validate', [{ observation: one, evaluationMs: 1 }], 1);
    }
    metrics.timedOut('p');
    metrics.removePolicy('p');
    assert.doesNotMatch(await metrics.text(), /policy_name="p"/);
    assert.equal((await evaluations(metrics)).length, 1);
    metrics.reviewed('validate', [{ observation, evaluationMs: 1 }], 1);
    assert.match((await evaluations(metrics)).join('\n'), /policy_name="p".* 1$/m);
  });
});
