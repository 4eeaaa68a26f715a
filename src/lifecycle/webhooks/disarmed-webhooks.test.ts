import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type AdmissionPolicySpec, type PolicyMatch, policyMatch } from '../../resources/index.ts';
import { armedConfiguration, disarmedConfiguration, isDisarmed, reducedConfiguration } from './disarmed-webhooks.ts';
import { webhookConfigurations, type WebhookSettings } from './webhook-configurations.ts';
import type { Webhook, WebhookConfiguration } from './webhook-object.ts';

const SETTINGS: WebhookSettings = {
  policyServer: 'default',
  target: { url: 'https://localhost:8443', ca: 'PEM' },
  exemptNamespaces: ['kube-system'],
  identities: [],
  productNamespace: 'portcullis',
};

function match(name: string, resource: string, options: { namespace?: string; own?: boolean } = {}): PolicyMatch {
  const { namespace, own = false } = options;
  const rules = [{ apiGroups: [''], apiVersions: ['v1'], resources: [resource], operations: ['CREATE'] }];
  const spec = { mutating: false, rules, timeoutSeconds: 10 } as unknown as AdmissionPolicySpec;
  const kind = namespace === undefined ? 'ClusterAdmissionPolicy' : 'AdmissionPolicy';
  const metadata = { name, ...(namespace === undefined ? {} : { namespace }) };
  return policyMatch({ kind, metadata, spec }, { productNamespace: 'portcullis', ownWebhook: own });
}

function configurationOf(matches: readonly PolicyMatch[]): WebhookConfiguration {
  const [configuration] = webhookConfigurations(matches, SETTINGS).configurations;
  assert.ok(configuration);
  return configuration;
}

/** The resources of each webhook that API servers call. */
function called({ webhooks = [] }: WebhookConfiguration): readonly (readonly string[])[] {
  return (webhooks as readonly Webhook[])
    .filter(({ matchConditions = [] }) => !matchConditions.some(({ expression }) => expression === 'false'))
    .map(({ rules }) => rules.flatMap(({ resources }) => resources).toSorted());
}

describe('webhooks without a controller', () => {
  const pods = match('one', 'pods');
  const secrets = match('two', 'secrets');

  it('are called no more when all are disarmed, and are the same again afterwards', () => {
    const before = configurationOf([pods, match('own', 'configmaps', { own: true })]);
    const disarmed = disarmedConfiguration(before);
    assert.ok(disarmed);
    assert.deepEqual([called(disarmed), isDisarmed(disarmed), isDisarmed(before)], [[], true, false]);
    assert.equal(disarmedConfiguration(disarmed), undefined);
    assert.deepEqual(armedConfiguration(disarmed), before);
    assert.equal(armedConfiguration(before), undefined);
  });

  it('lose the requests of one policy only, and get them back', () => {
    const before = configurationOf([pods, secrets]);
    const reduced = reducedConfiguration(before, pods, [secrets]);
    assert.ok(reduced);
    assert.deepEqual([called(before), called(reduced)], [[['pods', 'secrets']], [['secrets']]]);
    assert.deepEqual(reducedConfiguration(reduced, pods, [pods, secrets]), before);
  });

  it('keep requests that another policy matches as well', () => {
    const before = configurationOf([pods, match('three', 'pods')]);
    const reduced = reducedConfiguration(before, pods, [match('three', 'pods')]);
    assert.deepEqual(called(reduced ?? before), [['pods']]);
  });

  it('are not called any more when the last policy of a webhook is disarmed', () => {
    const own = match('own', 'configmaps', { own: true });
    const before = configurationOf([pods, own]);
    assert.deepEqual(called(reducedConfiguration(before, own, [pods]) ?? before), [['pods']]);
    assert.deepEqual(called(reducedConfiguration(before, pods, [own]) ?? before), [['configmaps']]);
  });

  it('lose nothing of other namespaces', () => {
    const [here, there] = ['here', 'there'].map((namespace) => match('p', 'pods', { namespace }));
    assert.ok(here && there);
    const other = match('q', 'secrets', { namespace: 'there' });
    const before = configurationOf([here, there, other]);
    const reduced = reducedConfiguration(before, here, [there, other]);
    assert.ok(reduced);
    assert.deepEqual([called(before).length, called(reduced)], [2, [['pods', 'secrets']]]);
  });
});
