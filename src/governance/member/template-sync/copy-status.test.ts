import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findCondition, type PendingDependency, type Policy } from '../../../resources/index.ts';
import { copyStatus, type TemplateResult, unplannedStatus } from './copy-status.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');

function copy(status: NonNullable<Policy['status']> = {}): Policy {
  return {
    apiVersion: 'policy.open-cluster-management.io/v1',
    kind: 'Policy',
    metadata: { name: 'policies.kafka', namespace: 'local-cluster', generation: 2 },
    spec: { disabled: false, 'policy-templates': [] },
    status,
  };
}

function result(
  name: string,
  compliant: TemplateResult['compliant'],
  message = `${compliant ?? ''}; as it is`,
): TemplateResult {
  return { name, state: 'Applied', compliant, message, pending: [] };
}

function dependency(name: string): PendingDependency {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    namespace: 'default',
    name,
    required: 'Compliant',
    reason: 'NotFound',
    since: '2026-01-01T00:00:00Z',
  };
}

const waiting = (
  name: string,
  pending: readonly PendingDependency[],
  compliant: 'Pending' | 'Compliant' = 'Pending',
): TemplateResult => ({
  name,
  state: 'Waiting',
  compliant,
  message: `${compliant}; it waits`,
  pending,
});

describe('the status of a copy', () => {
  it('names the template that is not compliant before one that waits', () => {
    const results = [
      waiting('second', [dependency('a')]),
      result('first', 'NonCompliant', 'NonCompliant; violation - pods [x] not found'),
    ];
    const status = copyStatus(copy(), results, [], undefined, NOW);
    assert.deepEqual([status.compliant, status.message], ['NonCompliant', 'first: violation - pods [x] not found']);
    assert.equal(findCondition(status.conditions, 'Ready')?.reason, 'DependenciesPending');
  });

  it('has a message of one line, as a cell of a table', () => {
    const certificates = 'NonCompliant;  1 certificates expire in less than 300h0m0s: shop:web\n\nask the team\n';
    assert.equal(
      copyStatus(copy(), [result('expiry', 'NonCompliant', certificates)], [], undefined, NOW).message,
      'expiry: 1 certificates expire in less than 300h0m0s: shop:web ask the team',
    );
  });

  it('says what a template waits for', () => {
    const status = copyStatus(copy(), [waiting('second', [dependency('a'), dependency('b')])], [], undefined, NOW);
    const first = 'ConfigMap default/a, which does not exist';
    assert.equal(status.message, `second waits for ${first}`);
    assert.deepEqual(status.pending, [
      { template: 'second', reason: 'NotFound', message: `${first}; ConfigMap default/b, which does not exist` },
    ]);
  });

  it('says what holds a template that is being removed', () => {
    const held = { ...waiting('refresh', [dependency('a')], 'Compliant'), removal: 'the Job is forbidden' };
    assert.equal(
      copyStatus(copy(), [held], [], undefined, NOW).message,
      'refresh is being removed: the Job is forbidden',
    );
  });

  it('is ready while a template waits that ignorePending makes Compliant, unless it is being removed', () => {
    const fine = waiting('refresh', [dependency('a')], 'Compliant');
    const ready = (one: TemplateResult): string | undefined =>
      findCondition(copyStatus(copy(), [one], [], undefined, NOW).conditions, 'Ready')?.status;
    assert.deepEqual([ready(fine), ready({ ...fine, state: 'Removing' })], ['True', 'False']);
  });

  it('adds a message to the history only when it is new', () => {
    const before = copyStatus(copy(), [result('first', 'Compliant')], [], undefined, NOW);
    const same = copyStatus(copy(before), [result('first', 'Compliant')], [], undefined, NOW + 5_000);
    assert.deepEqual(same.details, before.details);
    const other = copyStatus(copy(before), [result('first', 'NonCompliant')], [], undefined, NOW + 5_000);
    assert.deepEqual(
      other.details?.[0]?.history?.map(({ message }) => message),
      ['NonCompliant; as it is', 'Compliant; as it is'],
    );
  });

  it('reports problems of dependencies as a condition', () => {
    const problem = { type: 'cycle', message: 'a depends on b depends on a' };
    const { conditions } = copyStatus(copy(), [result('first', 'Compliant')], [problem], undefined, NOW);
    const { status, reason, message } = findCondition(conditions, 'DependenciesValid') ?? {};
    assert.deepEqual([status, reason, message], ['False', 'Cycle', problem.message]);
  });

  it('stays smaller than an object may be, with every template in it', () => {
    const many = Array.from({ length: 20 }, (_, index) =>
      waiting(
        `t${index}`,
        Array.from({ length: 500 }, (__, number) => dependency(`${'x'.repeat(200)}${number}`)),
      ),
    );
    const long = Array.from({ length: 1000 }, (_, index) =>
      result(`r${index}`, 'NonCompliant', `NonCompliant; ${'é'.repeat(4000)}`),
    );
    for (const results of [many, long]) {
      const status = copyStatus(copy(), results, [], undefined, NOW);
      assert.ok(
        Buffer.byteLength(JSON.stringify(status)) < 1024 * 1024,
        `${Buffer.byteLength(JSON.stringify(status))} bytes`,
      );
      assert.equal(status.details?.length, results.length);
      assert.ok(status.details?.every(({ history }) => (history ?? []).length > 0));
    }
  });
});

describe('the details of a copy that are too long', () => {
  const many = Array.from({ length: 20 }, (_, index) =>
    waiting(
      `t${index}`,
      Array.from({ length: 500 }, (__, number) => dependency(`${'x'.repeat(200)}${number}`)),
    ),
  );
  const long = Array.from({ length: 300 }, (_, index) => ({
    ...result(`r${index}`, 'NonCompliant', `NonCompliant; ${'e'.repeat(4000)}`),
    pending: Array.from({ length: 5 }, (__, number) => dependency(`${number}`)),
  }));
  for (const [what, results] of Object.entries({ many, long })) {
    it(`are the same after a pass in which nothing changed: ${what}`, () => {
      const first = copyStatus(copy(), results, [], undefined, NOW);
      const second = copyStatus(copy(first), results, [], undefined, NOW + 60_000);
      assert.deepEqual(second, first);
    });
  }

  it('show the first violation in the message of the Policy, whatever complies before it', () => {
    const text = `notification - pods [${'x'.repeat(300)}] found as specified; violation - pods [y] not found`;
    const { message } = copyStatus(copy(), [result('t', 'NonCompliant', `NonCompliant; ${text}`)], [], undefined, NOW);
    assert.equal(message, 't: violation - pods [y] not found');
  });

  it('have a new message once', () => {
    const first = copyStatus(copy(), long, [], undefined, NOW);
    const changed = long.map((one) => ({ ...one, message: `NonCompliant; ${'f'.repeat(4000)}` }));
    const second = copyStatus(copy(first), changed, [], undefined, NOW + 60_000);
    assert.match(second.details?.[0]?.history?.[0]?.message ?? '', /^NonCompliant; f/);
    assert.deepEqual(copyStatus(copy(second), changed, [], undefined, NOW + 120_000), second);
  });
});

describe('the status of a copy after a pass that planned nothing', () => {
  const before = copyStatus(copy(), [result('first', 'Compliant')], [], undefined, NOW);

  it('keeps details and compliance of the generation that they are about', () => {
    const failure = { state: 'reconciling', reason: 'ReconcileFailed', message: 'the cluster is away' } as const;
    const status = unplannedStatus(copy({ ...before, observedGeneration: 1 }), failure, NOW);
    assert.deepEqual([status.compliant, status.details, status.observedGeneration], ['Compliant', before.details, 1]);
    assert.equal(findCondition(status.conditions, 'Ready')?.status, 'False');
  });

  it('has no compliance while a user must act', () => {
    const failure = { state: 'stalled', reason: 'NotACopy', message: 'create it elsewhere' } as const;
    const status = unplannedStatus(copy({ ...before, observedGeneration: 1 }), failure, NOW);
    assert.deepEqual(
      [status.compliant, status.observedGeneration, status.message],
      [undefined, 2, 'create it elsewhere'],
    );
  });
});
