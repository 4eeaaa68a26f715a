import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Observation } from '../engine/index.ts';
import { MAX_RESOURCES, ServerMetrics } from './metrics.ts';

const observation: Observation = {
  policy: 'p',
  mode: 'protect',
  route: 'validate',
  outcome: 'verdict',
  uid: 'u',
  kind: 'Pod',
  namespace: 'shop',
  operation: 'CREATE',
  accepted: true,
  mutated: false,
};
const create = (): ServerMetrics => new ServerMetrics({ waiting: () => 0, held: () => 0, phases: () => [] });

/** The evaluations that are counted, without the name in front. */
async function evaluations(metrics: ServerMetrics): Promise<string[]> {
  const lines = (await metrics.text()).split('\n');
  return lines.filter((line) => line.startsWith('kubewarden_policy_evaluations_total{'));
}

describe('labels that come from reviews', () => {
  it('are kept when they have the form of Kubernetes names', async () => {
    const metrics = create();
    metrics.reviewed('validate', observation, 1, 1);
    assert.match(
      (await evaluations(metrics)).join(),
      /resource_kind="Pod".*resource_namespace="shop".*_operation="CREATE"/,
    );
  });

  it('are "other" when they do not', async () => {
    const metrics = create();
    const hostile = { kind: 'K'.repeat(1000), namespace: 'a b', operation: 'DESTROY', errorCode: 99_999 };
    metrics.reviewed('validate', { ...observation, ...hostile }, 1, 1);
    const [line = ''] = await evaluations(metrics);
    for (const label of ['resource_kind', 'resource_namespace', 'resource_request_operation', 'error_code']) {
      assert.match(line, new RegExp(`${label}="other"`));
    }
  });

  it('are told apart up to a number', async () => {
    const metrics = create();
    for (let index = 0; index < MAX_RESOURCES + 100; index += 1) {
      metrics.reviewed('validate', { ...observation, namespace: `n${index}` }, 1, 1);
    }
    const lines = await evaluations(metrics);
    assert.ok(lines.length <= MAX_RESOURCES + 1, `${lines.length}`);
    assert.match(lines.join('\n'), /resource_namespace="other"/);
  });
});
