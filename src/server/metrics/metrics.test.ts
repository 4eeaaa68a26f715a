import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Registry } from 'prom-client';
import type { Observation } from '../../engine/index.ts';
import { memoryBudget, PolicyMemory } from '../../evaluation/index.ts';
import type { ServedPolicyPhase } from '../status/served-policy-status.ts';
import { pageText } from '../../metrics/index.ts';
import { MAX_DETAILED_SERIES, MAX_EVALUATION_SERIES } from './evaluation-counts.ts';
import {
  MAX_LATENCY_POLICIES,
  MAX_PHASE_POLICIES,
  MAX_TIMEOUT_POLICIES,
  ServerMetrics,
  type ServerMetricsOptions,
} from './metrics.ts';

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
const HOUR_MS = 3_600_000;

interface Test {
  readonly metrics: ServerMetrics;
  readonly text: () => Promise<string>;
}

function create(
  options: ServerMetricsOptions = {},
  phases: readonly (readonly [string, ServedPolicyPhase])[] = [],
): Test {
  const registry = new Registry();
  const gauges = {
    waiting: () => 0,
    held: () => 0,
    slowOwners: () => 0,
    endingThreads: () => 0,
    phases: () => phases,
    memory: () => new PolicyMemory(memoryBudget(2 ** 30, 2), () => 'team'),
  };
  const metrics = new ServerMetrics(gauges, { ...options, registry });
  return { metrics, text: () => pageText([{ registry }]) };
}

const review = (metrics: ServerMetrics, change: Partial<Observation> = {}): void =>
  metrics.reviewed('validate', [{ observation: { ...observation, ...change }, evaluationMs: 1 }], 1);

/** The counted evaluations, without the metric's name. */
async function evaluations({ text }: Pick<Test, 'text'>): Promise<string[]> {
  return (await text()).split('\n').filter((line) => line.startsWith('kubewarden_policy_evaluations_total{'));
}

const total = (lines: readonly string[]): number =>
  lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);

describe('labels from reviews', () => {
  it('are kept when they are valid Kubernetes names', async () => {
    const test = create();
    review(test.metrics);
    assert.match(
      (await evaluations(test)).join(),
      /resource_kind="Pod".*resource_namespace="shop".*_operation="CREATE"/,
    );
  });

  it('are "other" for codes that are not HTTP status codes', async () => {
    const test = create();
    review(test.metrics, { errorCode: 99_999 });
    assert.match((await evaluations(test)).join(), /error_code="other"/);
  });

  it('name no namespace when there are many, and counts stay right', async () => {
    const test = create({ labelledNamespaces: 10 });
    for (let index = 0; index < 10; index += 1) {
      review(test.metrics, { namespace: `n${index}` });
    }
    assert.equal((await evaluations(test)).length, 10);
    assert.match(await test.text(), /^portcullis_metrics_namespace_labels 1$/m);
    for (let index = 0; index < 20; index += 1) {
      review(test.metrics, { namespace: `n${index}` });
    }
    const lines = await evaluations(test);
    assert.equal(lines.length, 1);
    assert.doesNotMatch(lines.join(), /resource_namespace/);
    assert.equal(total(lines), 30);
    assert.match(await test.text(), /^portcullis_metrics_namespace_labels 0$/m);
  });

  it('name no namespace where that is switched off', async () => {
    const test = create({ labelledNamespaces: 0 });
    review(test.metrics);
    assert.doesNotMatch((await evaluations(test)).join(), /resource_namespace/);
  });
});

describe('series', () => {
  it('are limited for whatever is reviewed, the rest is counted together, and the page says so', async () => {
    const test = create();
    for (let index = 0; index < MAX_DETAILED_SERIES + 500; index += 1) {
      review(test.metrics, { kind: `Kind${index}`, namespace: 'shop' });
    }
    const lines = await evaluations(test);
    assert.equal(lines.length, MAX_DETAILED_SERIES + 1);
    assert.match(lines.at(-1) ?? '', /policy_name="p".*resource_kind="other".* 500$/);
    assert.equal(total(lines), MAX_DETAILED_SERIES + 500);
    assert.match(await test.text(), /^portcullis_metrics_limited_total 500$/m);
  });

  it('are limited in total for whatever policies there are', async () => {
    const many = MAX_EVALUATION_SERIES + 5_000;
    const names = Array.from({ length: many }, (_, index) => `policy-${index}`);
    const phases = names.map((name, index) => [name, index === many - 1 ? 'Error' : 'Active'] as const);
    const test = create({}, phases);
    for (const policy of names) {
      review(test.metrics, { policy });
      test.metrics.timedOut(policy);
    }
    const lines = await evaluations(test);
    assert.ok(lines.length <= MAX_EVALUATION_SERIES + 1, `${lines.length}`);
    assert.equal(total(lines), many);
    const text = await test.text();
    const count = (prefix: string): number => text.split('\n').filter((line) => line.startsWith(prefix)).length;
    assert.ok(count('kubewarden_policy_evaluation_latency_milliseconds_count') <= MAX_LATENCY_POLICIES + 1);
    assert.equal(count('portcullis_policy_timeouts_total{'), MAX_TIMEOUT_POLICIES + 1);
    assert.equal(count('portcullis_policy_phase{'), MAX_PHASE_POLICIES + 1);
    assert.match(
      text,
      new RegExp(`^portcullis_policy_phase\\{policy_name="policy-${many - 1}",phase="Error"\\} 1$`, 'm'),
    );
    assert.match(text, /^portcullis_policy_phase\{policy_name="other",phase="Active"\} 25000$/m);
    assert.match(text, /^portcullis_policy_timeouts_total\{policy_name="other"\} 34000$/m);
  });

  it('are forgotten when nothing was counted in them for an hour', async () => {
    let now = 0;
    const test = create({ now: () => now });
    const seen = { ...observation, namespace: 'gone' };
    test.metrics.reviewed('validate', [{ observation: seen, evaluationMs: 1 }], 1);
    now = HOUR_MS;
    review(test.metrics);
    now += 1;
    const lines = await evaluations(test);
    assert.equal(lines.length, 1);
    assert.match(lines.join(), /"shop"/);
    assert.match(await test.text(), /^portcullis_metrics_series_forgotten_total 1$/m);
    test.metrics.reviewed('validate', [{ observation: seen, evaluationMs: 1 }], 1);
    assert.match((await evaluations(test)).join('\n'), /"gone".* 1$/m);
  });

  it('of namespaces that are forgotten leave room for others', async () => {
    let now = 0;
    const test = create({ labelledNamespaces: 2, now: () => now });
    const labelled = async (...namespaces: readonly string[]): Promise<readonly string[]> => {
      for (const namespace of namespaces) {
        review(test.metrics, { namespace });
      }
      return (await evaluations(test)).map((line) => /resource_namespace="(\w+)"/.exec(line)?.[1] ?? 'none');
    };
    assert.deepEqual(await labelled('a', 'b'), ['a', 'b']);
    now = HOUR_MS + 1;
    assert.deepEqual(await labelled(), []);
    assert.deepEqual(await labelled('c', 'd'), ['c', 'd']);
    assert.deepEqual(await labelled('e'), ['none']);
  });
});

describe('evaluations', () => {
  it('with equal labels are counted together, from all workers', async () => {
    const test = create();
    const { metrics } = test;
    metrics.reviewed('validate', [{ observation, evaluationMs: 3 }], 4);
    metrics.reviewed('validate', [{ observation, evaluationMs: 30 }], 40);
    metrics.reviewed('validate', [{ observation: { ...observation }, evaluationMs: 300 }], 400);
    metrics.reviewed(
      'validate',
      [{ observation: { ...observation, accepted: false, errorCode: 403 }, evaluationMs: 3 }],
      4,
    );
    const lines = await evaluations(test);
    assert.deepEqual(
      lines.map((line) => line.split(' ').at(-1)),
      ['3', '1'],
    );
    const text = await test.text();
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
    const test = create();
    const { metrics } = test;
    const other = { ...observation, policy: 'other' };
    for (const one of [observation, observation, other]) {
      metrics.reviewed('validate', [{ observation: one, evaluationMs: 1 }], 1);
    }
    metrics.timedOut('p');
    metrics.removePolicy('p');
    assert.doesNotMatch(await test.text(), /policy_name="p"/);
    assert.equal((await evaluations(test)).length, 1);
    metrics.reviewed('validate', [{ observation, evaluationMs: 1 }], 1);
    assert.match((await evaluations(test)).join('\n'), /policy_name="p".* 1$/m);
  });
});
