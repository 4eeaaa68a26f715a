import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { BuiltinName } from '../modules/index.ts';
import { createBuiltinGuest } from './guests/builtin-guest.ts';
import { BuiltinSettings } from './builtin-settings.ts';

const CONTEXT = { limits: { fuel: Infinity, answerBytes: 1 }, hostCall: () => assert.fail(), log: () => {} };

const CASES: readonly (readonly [BuiltinName, unknown, readonly string[]])[] = [
  ['cel', { validations: [{ expression: 'true' }] }, []],
  ['cel', { validations: [{ expression: '1 +' }], nonsense: 1 }, ['nonsense', 'validations[0].expression']],
  ['pod-security', { enforce: 'baseline' }, []],
  ['pod-security', { enforce: 'basic' }, ['enforce']],
  ['network-policy-support', { providers: [{ name: 'cilium', version: '1.15.4' }] }, []],
  ['network-policy-support', { providers: [{ name: 'cillium' }] }, ['providers[0].name']],
  ['pod-profile', { runAsUser: 1, fsGroup: 1, supplementalGroups: 1, seLinux: 'RunAsAny' }, []],
  ['pod-profile', { runAsUser: 1, fsGroup: 1, supplementalGroups: 1, seLinux: 'MustRunAs' }, ['seLinux']],
];

describe('settings of builtin modules', () => {
  const settings = new BuiltinSettings();
  for (const [name, value, paths] of CASES) {
    it(`are checked as by the guest: ${name} ${JSON.stringify(value)}`, () => {
      const { problems } = settings.check(name, value);
      assert.deepEqual(
        problems.map(({ field }) => field),
        paths,
      );
      const verdict = createBuiltinGuest(name).validateSettings(JSON.stringify(value), CONTEXT);
      assert.equal(verdict.valid, problems.length === 0);
    });
  }

  it('say where expressions use the authorizer, and where they ask about a service account', () => {
    const { problems, needs } = settings.check('cel', {
      matchConditions: [{ name: 'a', expression: "'authorizer' == request.name" }],
      variables: [
        { name: 'account', expression: "[authorizer].map(a, a.serviceAccount('shop', 'x').path('/').check('get'))" },
        { name: 'user', expression: "authorizer.path('/').check('get')" },
      ],
      validations: [{ expression: 'variables.user.allowed()' }],
    });
    assert.deepEqual(problems, []);
    assert.deepEqual(needs, [
      { right: 'authorize', field: 'variables[0].expression' },
      { right: 'authorize-account', field: 'variables[0].expression' },
    ]);
  });
});
