import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ConfigurationPolicy, findCondition, type RelatedObject } from '../../resources/index.ts';
import { type ObjectPlan, type ObjectResult, REASONS, type ObjectTemplatePlan } from '../configuration/index.ts';
import { evaluatedStatus, unevaluatedStatus } from './configuration-status.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const READY = { state: 'ready', reason: 'Evaluated', message: '' } as const;
const MAPS = { group: '', version: 'v1', resource: 'configmaps', kind: 'ConfigMap', namespaced: true };

function policy(
  status: NonNullable<ConfigurationPolicy['status']> = {},
  spec: Partial<ConfigurationPolicy['spec']> = {},
) {
  return {
    apiVersion: 'policy.open-cluster-management.io/v1',
    kind: 'ConfigurationPolicy',
    metadata: { name: 'checked', namespace: 'local-cluster', generation: 2 },
    spec: { remediationAction: 'enforce', pruneObjectBehavior: 'None', 'object-templates': [], ...spec },
    status,
  } satisfies ConfigurationPolicy;
}

function result(name: string, isCompliant: boolean, reason: string): ObjectResult {
  return { namespace: 'default', names: [name], isCompliant, reason };
}

function plan(name: string, history: readonly ObjectResult[], diff?: string): ObjectTemplatePlan {
  const object: ObjectPlan = {
    type: MAPS,
    namespace: 'default',
    name,
    settings: { isEnforced: true, recreateOption: 'None', diffRecord: 'InStatus', isSensitive: false },
    verdict: 'found',
    history,
    action: { type: 'none' },
    desired: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } },
    statusMatches: true,
    hasStatus: false,
    mismatches: [],
    properties: { createdByPolicy: true, uid: 'u1', ...(diff === undefined ? {} : { diff }) },
  };
  return { index: 0, resource: 'configmaps', objects: [object] };
}

const found = (name: string, diff?: string): ObjectTemplatePlan =>
  plan(name, [result(name, true, REASONS.found)], diff);
const failed: ObjectTemplatePlan = {
  index: 0,
  resource: '',
  objects: [],
  result: { namespace: '', names: [], isCompliant: false, reason: REASONS.templateFailed, message: 'broken' },
};
const namesOf = (related: readonly RelatedObject[] | undefined): readonly (string | undefined)[] =>
  (related ?? []).map(({ object }) => object?.metadata?.name);
const messagesOf = ({ history }: NonNullable<ConfigurationPolicy['status']>): readonly (string | undefined)[] =>
  (history ?? []).map(({ message }) => message);

describe('the status after an evaluation', () => {
  it('reports what was wrong, and then what was done', () => {
    const plans = [found('a'), plan('b', [result('b', false, REASONS.notFound), result('b', true, REASONS.created)])];
    const status = evaluatedStatus(policy(), { plans }, READY, NOW);
    assert.equal(status.compliant, 'Compliant');
    const first = 'configmaps [a] found as specified in namespace default';
    assert.deepEqual(messagesOf(status), [
      `Compliant; notification - ${first}; notification - configmaps [b] was created successfully in namespace default`,
      `NonCompliant; notification - ${first}; violation - configmaps [b] not found in namespace default`,
    ]);
  });

  it('changes no time as long as nothing else changes', () => {
    const before = evaluatedStatus(policy(), { plans: [found('a')] }, READY, NOW);
    assert.deepEqual(evaluatedStatus(policy(before), { plans: [found('a')] }, READY, NOW + 60_000), before);
  });

  it('keeps the objects of templates that fail, so that they are not taken for ones that left', () => {
    const before = evaluatedStatus(policy(), { plans: [found('a'), found('b')] }, READY, NOW);
    for (const evaluation of [{ plans: [failed, found('b')] }, { failure: 'broken' }]) {
      const status = evaluatedStatus(policy(before), evaluation, READY, NOW);
      assert.equal(status.compliant, 'NonCompliant');
      assert.deepEqual(namesOf(status.relatedObjects), ['a', 'b']);
    }
    assert.deepEqual(namesOf(evaluatedStatus(policy(before), { plans: [found('b')] }, READY, NOW).relatedObjects), [
      'b',
    ]);
  });

  it('is Compliant without templates', () => {
    const status = evaluatedStatus(policy(), { plans: [] }, READY, NOW);
    assert.deepEqual(messagesOf(status), [
      'Compliant; notification - checked contains no object templates to check, and thus has no violations',
    ]);
  });

  it('leaves out differences, and then objects, that do not fit an object', () => {
    const diffs = Array.from({ length: 100 }, (_, index) => found(`n${index}`, 'é'.repeat(10_000)));
    const withoutDiffs = evaluatedStatus(policy(), { plans: diffs }, READY, NOW);
    assert.equal(withoutDiffs.relatedObjects?.length, 100);
    assert.ok(
      withoutDiffs.relatedObjects.every(({ properties }) => properties?.diff === undefined && properties?.uid === 'u1'),
    );

    const many = Array.from({ length: 10_000 }, (_, index) => found(`n${index}`));
    const large = evaluatedStatus(policy(), { plans: many }, READY, NOW);
    assert.ok(Buffer.byteLength(JSON.stringify(large)) < 1_400_000);
    const { message = '' } = findCondition(large.conditions, 'Ready') ?? {};
    assert.match(message, /^the status has only \d+ of 10000 objects, and only these are pruned: split the policy; /);
  });
});

describe('the status without an evaluation', () => {
  it('keeps what is known, with another state', () => {
    const before = evaluatedStatus(policy(), { plans: [found('a')] }, READY, NOW);
    const waiting = { state: 'reconciling', reason: 'Suspended', message: 'it waits' } as const;
    const status = unevaluatedStatus(policy(before), 'Pending', waiting, NOW);
    assert.equal(status.compliant, 'Pending');
    assert.deepEqual([status.relatedObjects, status.history], [before.relatedObjects, before.history]);
    assert.equal(unevaluatedStatus(policy(before), undefined, waiting, NOW).compliant, undefined);
  });
});
