import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createLog } from '../../log/index.ts';
import { PolicyReviews } from './policy-reviews.ts';
import { conditions, CONTROLLER, object, review, SPEC } from './testing/validation-cases.ts';

describe('reviews of policies in their thread', () => {
  const log = createLog({ level: 'silent' });
  const options = {
    controllerUser: CONTROLLER,
    tenantHosts: (name: string) => (name === 'shared' ? ['10.0.0.5'] : []),
    kubewardenFinalizer: (name: string) => (name === 'old' ? 'kubewarden.io/finalizer' : undefined),
    tenantCapabilities: (name: string) => (name === 'shared' ? ['kubernetes/can_i'] : []),
  };
  let reviews: PolicyReviews;
  before(() => {
    reviews = new PolicyReviews(options, log);
  });
  after(() => reviews.stop());

  async function errorsOf(spec: object): Promise<string> {
    const { error } = await reviews.validate(review('ap', object('ap', { ...SPEC, ...spec })), 'shop');
    assert.ok(error === undefined || error.toStatus().code === 422);
    return error?.message ?? '';
  }

  it('get a Status as from an API server, and the warnings', async () => {
    assert.equal(
      await errorsOf({ sideEffects: 'Some' }),
      'AdmissionPolicy.policies.kubewarden.io "one" is invalid: spec.sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun" [side-effects]',
    );
    const { error, rights, warnings } = await reviews.validate(review('ap', object('ap', SPEC)), 'shop');
    assert.equal(error, undefined);
    assert.deepEqual(
      rights?.resources.map(({ resource }) => resource),
      ['pods'],
    );
    assert.deepEqual(warnings, []);
  });

  it('know what the PolicyServer of the policy allows', async () => {
    const module = 'https://10.0.0.5/policy.wasm';
    assert.match(await errorsOf({ module, settings: {} }), /\[module-source\]/);
    assert.equal(await errorsOf({ module, settings: {}, policyServer: 'shared' }), '');
    const from = { namespace: { annotations: ['team.example.com/settings'] } };
    const parameters = { from, overridable: ['enforce'], settingsExpression: '{}' };
    assert.match(await errorsOf({ parameters, policyServer: 'old' }), /finalizer kubewarden\.io\/finalizer/);
    assert.equal(await errorsOf({ parameters, policyServer: 'shared' }), '');
  });

  it('end at a deadline, and do not hold those of others', async () => {
    const hasty = new PolicyReviews(options, log, 1);
    const long = Array.from({ length: 64 }, (_, index) => `[${'1, '.repeat(20_000)}${index}].size() > 0`);
    try {
      const { error } = await hasty.validate(review('cap', object('cap', conditions(...long))), 'shop');
      assert.match(error?.message ?? '', /is invalid: spec: it takes more than .* s to check: .* \[too-costly\]$/);
    } finally {
      hasty.stop();
    }
  });

  it('refuse expressions by their length, before they parse them', async () => {
    const long = (length: number): string => '('.repeat(length);
    const settings = (...expressions: string[]): object => ({
      module: 'builtin:cel',
      settings: { validations: expressions.map((expression) => ({ expression })) },
    });
    assert.match(
      await errorsOf(settings(long(70_000), long(70_000))),
      /spec\.settings\.validations: Too long: expected at most 131072 characters in all expressions of a policy, got 140000/,
    );
    assert.match(
      await errorsOf(conditions(long(40_000), long(40_000))),
      /spec\.matchConditions: Forbidden: expected at most 65536 characters in all match conditions of a policy, got 80000/,
    );
  });

  it('refuse patterns by their size, before they compile them', async () => {
    const matching = (count: number): string =>
      Array.from({ length: count }, () => "'a'.matches('a{900}')").join(' || ');
    const settings = (...expressions: string[]): object => ({
      module: 'builtin:cel',
      settings: { validations: expressions.map((expression) => ({ expression })) },
    });
    assert.equal(await errorsOf(settings(matching(10))), '');
    assert.match(
      await errorsOf(settings(matching(12))),
      /regular expressions are too large together: expected at most 10000/,
    );
    assert.match(await errorsOf(settings("'a'.matches('a{1000}{12}')")), /\[settings\]/);
    const many = Array.from({ length: 3 }, () => matching(10));
    assert.match(await errorsOf(settings(...many)), /of the policy are too large together: expected at most 20000/);
    assert.match(await errorsOf(conditions(matching(6), matching(6))), /of all conditions are too large together/);
  });
});
