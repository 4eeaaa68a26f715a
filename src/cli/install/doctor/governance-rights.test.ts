import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ConfigurationPolicy, JsonObject } from '../../../resources/index.ts';
import { neededRights, reportedRights } from './governance-rights.ts';

const DEPLOYMENT = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'a', namespace: 'shop' } };

function policyOf(remediationAction: string, template: JsonObject, spec: JsonObject = {}): ConfigurationPolicy {
  return {
    apiVersion: 'policy.open-cluster-management.io/v1',
    kind: 'ConfigurationPolicy',
    metadata: { namespace: 'local-cluster', name: 'one' },
    spec: {
      remediationAction,
      ...spec,
      'object-templates': [{ complianceType: 'musthave', objectDefinition: DEPLOYMENT, ...template }],
    },
  } as unknown as ConfigurationPolicy;
}

describe('the rights that a ConfigurationPolicy needs', () => {
  for (const [action, template, expected] of [
    ['inform', {}, ['list', 'watch']],
    ['Enforce', {}, ['list', 'watch', 'get shop', 'create shop', 'update shop']],
    ['enforce', { complianceType: 'MustNotHave' }, ['list', 'watch', 'delete shop']],
    [
      'enforce',
      { recreateOption: 'Always' },
      ['list', 'watch', 'get shop', 'create shop', 'update shop', 'delete shop'],
    ],
    [
      'enforce',
      { objectDefinition: { ...DEPLOYMENT, metadata: { namespace: '{{ .ObjectNamespace }}' } } },
      ['list', 'watch', 'get', 'create', 'update'],
    ],
    ['enforce', { objectDefinition: { ...DEPLOYMENT, kind: '{{ fromConfigMap "a" "b" "c" }}' } }, []],
    ['enforce', { objectDefinition: { kind: 7, metadata: 'x', ['__proto__']: { kind: 'Secret' } } }, []],
  ] as const) {
    it(`${action} ${JSON.stringify(template)}: ${expected.join(', ')}`, () => {
      const rights = neededRights(policyOf(action, template));
      assert.deepEqual(
        rights.map(({ verb, namespace }) => (namespace === undefined ? verb : `${verb} ${namespace}`)),
        expected,
      );
    });
  }
});

describe('the rights that a ConfigurationPolicy needs to prune', () => {
  for (const [action, pruneObjectBehavior, expected] of [
    ['enforce', 'None', false],
    ['enforce', 'DeleteIfCreated', true],
    ['enforce', 'DeleteAll', true],
    ['inform', 'DeleteAll', false],
  ] as const) {
    it(`${action} with ${pruneObjectBehavior}: ${expected ? 'delete' : 'none'}`, () => {
      const rights = neededRights(policyOf(action, {}, { pruneObjectBehavior }));
      assert.equal(
        rights.some(({ verb }) => verb === 'delete'),
        expected,
      );
    });
  }
});

describe('the rights that a status says are missing', () => {
  const user = 'system:serviceaccount:portcullis:portcullis-governance';
  const reported = (message: string): readonly string[] =>
    reportedRights('portcullis', {
      apiVersion: 'v1',
      kind: 'Policy',
      metadata: { namespace: 'a', name: 'b' },
      status: { details: [{ history: [{ message }] }] },
    }).map(({ right }) => JSON.stringify(right));

  it('are those of the governance account', () => {
    const text = (name: string): string =>
      `deployments.apps is forbidden: User "${name}" cannot create resource "deployments" in API group "apps" in the namespace "shop"`;
    assert.deepEqual(reported(text(user)), [
      '{"verb":"create","group":"apps","resource":"deployments","namespace":"shop"}',
    ]);
    assert.deepEqual(reported(text('system:serviceaccount:shop:portcullis-governance')), []);
    assert.deepEqual(reported(`${text(user).slice(0, -40)}…`), []);
  });

  it('are those of the current message, not of former ones', () => {
    const message = `x is forbidden: User "${user}" cannot list resource "secrets" in API group ""`;
    const rights = (history: readonly string[]): number =>
      reportedRights('portcullis', {
        apiVersion: 'v1',
        kind: 'ConfigurationPolicy',
        metadata: { namespace: 'a', name: 'b' },
        status: { compliant: 'Compliant', history: history.map((one) => ({ message: one })) },
      }).length;
    assert.equal(rights([message, 'fine']), 1);
    assert.equal(rights(['Compliant; notification', message]), 0);
  });

  it('are read in linear time from hostile texts', () => {
    assert.deepEqual(reported('User "'.repeat(200_000)), []);
  });
});
