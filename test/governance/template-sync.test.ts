// Templates of Policies on an embedded cluster: what is applied, what is removed, and what must stay.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findCondition, type JsonObject } from '../../src/resources/index.ts';
import { until } from '../server/harness.ts';
import { CHECK, GovernanceLab, policyOfChecks, templateKind } from './governance-lab.ts';

const check = (name: string) => ({ ...CHECK, name: `local-cluster/${name}` });
const CONFIGURATION = { kind: 'ConfigurationPolicy', name: 'local-cluster/settings' };
const GROUP = 'policy.open-cluster-management.io';

/** A Policy with one ConfigurationPolicy, which enforces a ConfigMap. */
function policyOfSettings(
  name: string,
  { spec = {}, template = {} }: { spec?: JsonObject; template?: JsonObject } = {},
) {
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'Policy',
    metadata: { name, namespace: 'policies' },
    spec: {
      disabled: false,
      remediationAction: 'enforce',
      ...spec,
      'policy-templates': [
        {
          ...template,
          objectDefinition: {
            apiVersion: `${GROUP}/v1`,
            kind: 'ConfigurationPolicy',
            metadata: { name: 'settings' },
            spec: {
              'object-templates': [
                {
                  complianceType: 'musthave',
                  objectDefinition: {
                    apiVersion: 'v1',
                    kind: 'ConfigMap',
                    metadata: { name: 'settings', namespace: 'default' },
                    data: { mode: 'safe' },
                  },
                },
              ],
            },
          },
        },
      ],
    },
  };
}

/** A cluster-scoped kind of templates, as constraints of Gatekeeper are. */
const RULES = templateKind('Rule', 'Cluster');
const RULE = { apiVersion: 'lab.example.com/v1', kind: 'Rule', name: 'strict' };

function policyOfRule(spec: JsonObject): JsonObject {
  const { name, ...type } = RULE;
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'Policy',
    metadata: { name: 'rules', namespace: 'policies' },
    spec: { disabled: false, 'policy-templates': [{ objectDefinition: { ...type, metadata: { name }, spec } }] },
  };
}

describe('the templates of a Policy', () => {
  it('are restored after an edit by hand, also of a field that the Policy does not have', async () => {
    await using lab = await GovernanceLab.start();
    await lab.apply(policyOfSettings('settings'));
    await lab.reaches('policies/settings', 'Compliant');
    await lab.merge(CONFIGURATION, { spec: { remediationAction: 'inform' } });
    await lab.sees(CONFIGURATION, (object) => object?.spec?.['remediationAction'] === 'enforce');
    await lab.merge(CONFIGURATION, { spec: { pruneObjectBehavior: 'DeleteAll' } });
    await lab.sees(CONFIGURATION, (object) => object?.spec?.['pruneObjectBehavior'] === 'None');
    await lab.merge(CONFIGURATION, {
      metadata: { labels: { [`${GROUP}/cluster-name`]: 'other' } },
    });
    await lab.sees(CONFIGURATION, (object) => object?.metadata.labels?.[`${GROUP}/cluster-name`] === 'local-cluster');
    await lab.reaches('policies/settings', 'Compliant');
  });

  it('are copied anew after an edit of the copy', async () => {
    await using lab = await GovernanceLab.start();
    await lab.apply(policyOfSettings('settings'));
    const copy = { kind: 'Policy', name: 'local-cluster/policies.settings' };
    await lab.appears(copy);
    await lab.merge(copy, {
      spec: { remediationAction: 'inform', disabled: true },
      metadata: { labels: { odd: 'yes' } },
    });
    await lab.sees(
      copy,
      (object) => object?.spec?.['remediationAction'] === 'enforce' && object.metadata.labels?.['odd'] === undefined,
    );
    await lab.delete(copy);
    await lab.sees(copy, (object) => object !== undefined && object.metadata.deletionTimestamp === undefined);
    await lab.reaches('policies/settings', 'Compliant');
  });

  it('are deleted when they leave the Policy, when it is disabled, and when it is deleted', async () => {
    await using lab = await GovernanceLab.start();
    await lab.apply(policyOfSettings('settings'), policyOfChecks('checks', ['a', 'b']));
    const settings = { kind: 'ConfigMap', name: 'default/settings' };
    await Promise.all(
      [settings, CONFIGURATION, check('a'), check('b')].map(async (object) => await lab.appears(object)),
    );
    await lab.apply(policyOfChecks('checks', ['b']));
    await lab.disappears(check('a'));
    assert.notEqual(await lab.get(check('b')), undefined);
    await lab.merge({ kind: 'Policy', name: 'policies/settings' }, { spec: { disabled: true } });
    await lab.disappears(CONFIGURATION);
    const disabled = await lab.sees(
      { kind: 'Policy', name: 'policies/settings' },
      (object) => object?.status?.['message'] === 'the Policy is disabled',
    );
    assert.equal(disabled.status?.compliant, undefined);
    await lab.delete({ kind: 'Policy', name: 'policies/checks' });
    await lab.disappears(check('b'));
    // Nothing was asked to be pruned.
    assert.notEqual(await lab.get(settings), undefined);
  });

  it('stay while their kind is not served for a moment', async () => {
    await using lab = await GovernanceLab.start();
    await lab.apply(policyOfSettings('settings'));
    const { metadata } = await lab.appears(CONFIGURATION);
    const definition = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      name: `configurationpolicies.${GROUP}`,
    };
    const { status } = await lab.appears(definition);
    const others = (status?.conditions ?? []).filter(({ type }) => type !== 'Established');
    const gone = { type: 'Established', status: 'False', reason: 'Lab', message: '' };
    await lab.setStatus(definition, { conditions: [...others, gone] as never });
    await lab.apply(policyOfSettings('settings', { spec: { remediationAction: 'inform' } }));
    await lab.sees({ kind: 'Policy', name: 'local-cluster/policies.settings' }, (object) =>
      JSON.stringify(object?.status?.['details']).includes('Mapping not found'),
    );
    assert.equal((await lab.get(CONFIGURATION))?.metadata.uid, metadata.uid);
  });

  it('may be cluster-scoped: they are updated, and deleted with the Policy', async () => {
    await using lab = await GovernanceLab.start();
    await lab.apply(RULES, policyOfRule({ level: 1 }));
    await lab.appears(RULE);
    await lab.apply(policyOfRule({ level: 2 }));
    await lab.sees(RULE, (object) => object?.spec?.['level'] === 2);
    await lab.setStatus(RULE, { compliant: 'Compliant' });
    await lab.reaches('policies/rules', 'Compliant');
    await lab.delete({ kind: 'Policy', name: 'policies/rules' });
    await lab.disappears(RULE);
    await lab.disappears({ kind: 'Policy', name: 'local-cluster/policies.rules' });
  });

  it('leave an object of the same name that is not theirs alone', async () => {
    await using lab = await GovernanceLab.start();
    const { name, ...type } = RULE;
    await lab.apply(RULES, { ...type, metadata: { name }, spec: { level: 0 } }, policyOfRule({ level: 1 }));
    const policy = await lab.reaches('policies/rules', 'NonCompliant');
    assert.match(policy.status?.message ?? '', /already exists outside of a Policy/);
    assert.deepEqual((await lab.get(RULE))?.spec, { level: 0 });
    await lab.delete({ kind: 'Policy', name: 'policies/rules' });
    await lab.disappears({ kind: 'Policy', name: 'local-cluster/policies.rules' });
    assert.notEqual(await lab.get(RULE), undefined);
  });

  it('of a kind that appears later are applied then', async () => {
    await using lab = await GovernanceLab.start();
    await lab.apply(policyOfRule({ level: 1 }));
    const missing = await lab.reaches('policies/rules', 'NonCompliant');
    assert.match(
      missing.status?.message ?? '',
      /^strict: template-error; Mapping not found, check if you have the CRD deployed/,
    );
    await lab.apply(RULES);
    await lab.appears(RULE);
  });
});

describe('a Policy', () => {
  it('that is written into the namespace of the cluster has no compliance, and says where it belongs', async () => {
    await using lab = await GovernanceLab.start();
    await lab.namespace('local-cluster');
    const { metadata, ...policy } = policyOfSettings('direct');
    await lab.apply({ ...policy, metadata: { ...metadata, namespace: 'local-cluster' } });
    const refused = await lab.sees(
      { kind: 'Policy', name: 'local-cluster/direct' },
      (object) => object?.status?.['message'] !== undefined,
    );
    assert.equal(findCondition(refused.status?.conditions, 'Stalled')?.reason, 'NotACopy');
    assert.equal(refused.status?.compliant, undefined);
    assert.equal(await lab.get(CONFIGURATION), undefined);
  });

  it('in a namespace that is not governed does nothing, and says so', async () => {
    await using lab = await GovernanceLab.start({ settings: { namespaces: ['admins'] } });
    await lab.apply(policyOfSettings('settings'));
    const refused = await lab.sees(
      { kind: 'Policy', name: 'policies/settings' },
      (object) => object?.status?.['message'] !== undefined,
    );
    assert.equal(
      refused.status?.['message'],
      'Policies in namespace policies do not count: see --governance-namespaces',
    );
    assert.equal(refused.status?.compliant, undefined);
    assert.deepEqual(await lab.list('ConfigurationPolicy'), []);
    assert.deepEqual(await lab.list('PolicyRevision'), [], 'who may write it fills no other namespace');
  });

  it('may have a name of more than 62 characters; one that does not fit a copy is refused', async () => {
    await using lab = await GovernanceLab.start();
    const long = 'l'.repeat(200);
    const tooLong = 't'.repeat(250);
    await lab.apply(policyOfChecks(long, ['long']), policyOfChecks(tooLong, ['too-long']));
    await lab.appears(check('long'));
    const copy = await lab.policy(`local-cluster/policies.${long}`);
    assert.match(copy?.metadata.labels?.[`${GROUP}/root-policy`] ?? '', /^policies\.l{43}-[0-9a-f]{10}$/);
    const refused = await lab.sees(
      { kind: 'Policy', name: `policies/${tooLong}` },
      (object) => object?.status?.['message'] !== undefined,
    );
    assert.equal(findCondition(refused.status?.conditions, 'Stalled')?.reason, 'NameTooLong');
    assert.equal(await lab.get(check('too-long')), undefined);
  });

  it('that depends on itself, or in a circle, says so', async () => {
    await using lab = await GovernanceLab.start();
    const on = (name: string) => ({ apiVersion: `${GROUP}/v1`, kind: 'Policy', name, compliance: 'Compliant' });
    await lab.apply(
      policyOfChecks('self', ['self'], { spec: { dependencies: [on('self')] } }),
      policyOfChecks('left', ['left'], { spec: { dependencies: [on('right')] } }),
      policyOfChecks('right', ['right'], { spec: { dependencies: [on('left')] } }),
    );
    for (const [name, path] of [
      ['self', 'policies/self depends on itself'],
      ['left', 'policies/left → policies/right → policies/left'],
    ] as const) {
      const policy = await lab.sees(
        { kind: 'Policy', name: `policies/${name}` },
        (object) => findCondition(object?.status?.conditions, 'DependenciesValid')?.status === 'False',
      );
      const { reason, message } = findCondition(policy.status?.conditions, 'DependenciesValid') ?? {};
      assert.equal(reason, 'Cycle');
      assert.ok(message?.includes(path), message);
      // Before its own status is written, it waits for one that is about an older spec.
      await until(
        async () => (await lab.reaches(`policies/${name}`, 'Pending')).status?.pending?.[0]?.reason === 'Cycle',
      );
      const waiting = await lab.policy(`policies/${name}`);
      assert.match(waiting?.status?.message ?? '', /which waits for it in turn, in the cycle policies\//);
    }
  });

  it('counts in its PolicySet, and the PolicySet in dependencies', async () => {
    await using lab = await GovernanceLab.start();
    const set = (...policies: readonly string[]) => ({
      apiVersion: `${GROUP}/v1beta1`,
      kind: 'PolicySet',
      metadata: { name: 'base', namespace: 'policies' },
      spec: { policies },
    });
    const onSet = { apiVersion: `${GROUP}/v1beta1`, kind: 'PolicySet', name: 'base', compliance: 'Compliant' };
    await lab.apply(
      policyOfChecks('next', ['next'], { spec: { dependencies: [onSet] } }),
      policyOfChecks('a', ['a']),
      policyOfChecks('b', ['b']),
    );
    await lab.reaches('policies/next', 'Pending');
    await lab.apply(set('a', 'b', 'missing'));
    const reference = { kind: 'PolicySet', name: 'policies/base' };
    const message = (text: string) => lab.sees(reference, (object) => object?.status?.['statusMessage'] === text);
    await message('No status provided while awaiting policy status: a, b; Deleted policies: missing');
    await lab.setStatus(check('a'), { compliant: 'Compliant' });
    await lab.setStatus(check('b'), { compliant: 'Compliant' });
    await lab.reaches('policies/b', 'Compliant');
    const incomplete = await message('Deleted policies: missing');
    assert.equal(incomplete.status?.compliant, undefined);
    await until(async () =>
      (await lab.events('PolicyNotFound')).some(({ note }) => note === 'Deleted policies: missing'),
    );
    await lab.setStatus(check('b'), { compliant: 'NonCompliant' });
    await lab.sees(reference, (object) => object?.status?.compliant === 'NonCompliant');
    await lab.apply(set('a', 'b'));
    const failing = await message('All policies are reporting status');
    assert.equal(
      (await lab.sees(reference, (object) => object?.status?.compliant === 'NonCompliant')).kind,
      failing.kind,
    );
    assert.equal(await lab.get(check('next')), undefined);
    await lab.setStatus(check('b'), { compliant: 'Compliant' });
    await lab.appears(check('next'));
    assert.equal(
      (await lab.sees(reference, (object) => object?.status?.compliant === 'Compliant')).status?.compliant,
      'Compliant',
    );
  });

  it('with as many dependencies as the graph may have does not keep others from being evaluated', async () => {
    await using lab = await GovernanceLab.start();
    const dependencies = Array.from({ length: 500 }, (_, index) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      name: `c${index}`,
      namespace: 'default',
      compliance: 'Compliant',
    }));
    const names = Array.from({ length: 1000 }, (_, index) => `t${index}`);
    const extra = {
      t0: { extraDependencies: [{ ...CHECK, name: 'x', namespace: 'default', compliance: 'Compliant' }] },
    };
    await lab.apply(
      policyOfChecks('huge', names, { spec: { dependencies }, extra }),
      policyOfChecks('small', ['small']),
    );
    await lab.appears(check('small'));
    await lab.setStatus(check('small'), { compliant: 'Compliant' });
    await lab.reaches('policies/small', 'Compliant');
    await until(async () => (await lab.policy('policies/huge'))?.status?.observedGeneration !== undefined);
  });
});
