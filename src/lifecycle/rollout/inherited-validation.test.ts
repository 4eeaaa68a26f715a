import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AdmissionPolicySpec } from '../../resources/index.ts';
import { ADMISSION_RULES, inheritedValidation } from './inherited-validation.ts';
import { evaluatesAs, planRollout, type RolloutStep } from '../../rollout/index.ts';
import type { AdmissionRevision } from './admission-rollout-view.ts';
import { MODULES, replica, revision, spec, view } from './testing/rollout-scene.ts';

const base = revision(1, 'Serving', { modules: MODULES });
const candidate = (snapshot: AdmissionPolicySpec, rest: Partial<AdmissionRevision> = {}): AdmissionRevision =>
  revision(2, 'Candidate', { snapshot, ...rest });
const digest = MODULES[0].digest;

describe('a revision inherits the validation of what serves', () => {
  for (const [what, rest] of [
    ['failurePolicy', { failurePolicy: 'Ignore' }],
    ['mode', { mode: 'monitor' }],
    ['timeoutSeconds', { timeoutSeconds: 3 }],
    ['all of them', { failurePolicy: 'Ignore', mode: 'monitor', timeoutSeconds: 3 }],
  ] as const) {
    it(`when only ${what} differs`, () => {
      assert.equal(evaluatesAs({ rules: ADMISSION_RULES }, candidate(spec('1', rest)), base), true);
    });
  }

  for (const [what, rest] of [
    ['settings', { settings: { settings: 'other' } }],
    ['the module', { module: 'registry://example.com/policy:v2' }],
    ['the rules', { rules: [{ apiGroups: [''] }] }],
    ['mutating', { mutating: true }],
    ['a match condition', { matchConditions: [{ name: 'a', expression: 'true' }] }],
    ['podTemplates', { podTemplates: 'Warn' }],
    ['a kind that it reads', { contextAwareResources: [{ apiVersion: 'v1', kind: 'Namespace' }] }],
    ['the message', { message: 'no' }],
    ['the policy server', { policyServer: 'other' }],
  ] as const) {
    it(`not when ${what} differs as well: it applies whole or not at all`, () => {
      assert.equal(
        evaluatesAs({ rules: ADMISSION_RULES }, candidate(spec('1', { failurePolicy: 'Ignore', ...rest })), base),
        false,
      );
    });
  }

  it('compares the members of groups', () => {
    const group = (message: string, rest: object = {}): AdmissionPolicySpec =>
      ({
        policies: { a: { module: 'registry://example.com/a:v1' }, b: { module: 'registry://example.com/b:v1' } },
        expression: 'a() || b()',
        message,
        rules: [],
        ...rest,
      }) as unknown as AdmissionPolicySpec;
    const modules = ['a', 'b'].map((name) => ({ name, module: `registry://example.com/${name}:v1`, digest }));
    const serving = revision(1, 'Serving', { snapshot: group('no'), modules });
    const ignoring = candidate(group('no', { mode: 'monitor' }));
    assert.equal(evaluatesAs({ rules: ADMISSION_RULES }, ignoring, serving), true);
    assert.deepEqual(inheritedValidation(ignoring, serving).modules, modules);
    assert.equal(evaluatesAs({ rules: ADMISSION_RULES }, candidate(group('other')), serving), false);
  });

  it('when its modules are pinned, as by a rollback, and keeps the reference of its own spec', () => {
    const pinned = spec('1', { module: `registry://example.com/policy:v1@${digest}`, failurePolicy: 'Ignore' });
    assert.equal(evaluatesAs({ rules: ADMISSION_RULES }, candidate(pinned), base), true);
    assert.deepEqual(inheritedValidation(candidate(pinned), base).modules, [
      { name: 'policy', module: `registry://example.com/policy:v1@${digest}`, digest },
    ]);
    const other = spec('1', { module: `registry://example.com/policy:v1@sha256:${'b'.repeat(64)}` });
    assert.equal(evaluatesAs({ rules: ADMISSION_RULES }, candidate(other), base), false);
  });

  it('not when a refresh resolves its modules again', () => {
    assert.equal(evaluatesAs({ rules: ADMISSION_RULES }, candidate(spec('1'), { refresh: 'now' }), base), false);
    assert.equal(
      evaluatesAs({ rules: ADMISSION_RULES }, candidate(spec('1'), { refresh: 'now' }), { ...base, refreshed: 'now' }),
      true,
    );
  });
});

describe('the plan for a revision that inherits', () => {
  const ignoring = spec('1', { failurePolicy: 'Ignore' });
  const types = (steps: readonly RolloutStep[]): string[] => steps.map((step) => ('to' in step ? step.to : step.type));
  const validated = revision(2, 'Validated', { snapshot: ignoring, reason: 'Inherited' });
  const failing = { state: 'Failed', reason: 'FetchFailed' } as const;

  it('takes the modules over, also without a replica, and while a retry is waited for', () => {
    for (const replicas of [[], [replica('a', {}, 'lost')], [replica('a', { 1: failing })]]) {
      const one = candidate(ignoring, { reason: 'FetchFailed', nextRetry: Number.MAX_SAFE_INTEGER });
      const { steps } = planRollout(view([base, one], replicas));
      assert.ok(
        steps.some((step) => step.type === 'inherit' && step.revision === 2 && step.from === 1),
        JSON.stringify(steps),
      );
    }
  });

  it('switches at once where nothing serves, and covers only its own requests then', () => {
    for (const replicas of [[], [replica('a', {}, 'lost')], [replica('a', { 1: failing, 2: failing })]]) {
      assert.ok(types(planRollout(view([base, validated], replicas)).steps).includes('Serving'));
      const after = view([revision(1, 'Retired'), revision(2, 'Serving', { snapshot: ignoring })], replicas);
      assert.deepEqual(planRollout(after).steps, [{ type: 'enforce', revision: 2 }]);
    }
  });

  it('waits for replicas that serve, and before the replicas are known', () => {
    const serving = replica('a', { 1: 'Serving' });
    for (const replicas of [undefined, [serving], [serving, replica('b', { 1: failing })]]) {
      assert.ok(!types(planRollout(view([base, validated], replicas)).steps).includes('Serving'));
    }
    const staged = [replica('a', { 1: 'Serving', 2: 'Staged' }), replica('b', { 1: failing, 2: failing })];
    assert.ok(types(planRollout(view([base, validated], staged)).steps).includes('Serving'));
  });

  it('keeps stricter requests covered as before, until replicas have switched', () => {
    const loose = revision(1, 'Retired', { snapshot: ignoring });
    const strict = revision(2, 'Serving', { snapshot: spec('1') });
    assert.deepEqual(planRollout(view([loose, strict], [replica('a', {}, 'lost')])).steps, []);
  });

  it('does not wait for a refresh, which goes on afterwards', () => {
    const scene = view([base, candidate(spec('1'), { refresh: 'x', reason: 'FetchFailed' })], [], {
      spec: ignoring,
      refresh: 'x',
    });
    const [step] = planRollout(scene).steps;
    assert.deepEqual(step, {
      type: 'create',
      revision: 3,
      rollbackOf: undefined,
      ownWebhook: false,
      refresh: undefined,
    });
  });
});
