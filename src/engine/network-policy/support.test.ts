import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { builtinCatalogue } from './builtin-catalogue.ts';
import type { Feature, Trait } from './feature.ts';
import { ProviderSupport } from './support.ts';
import type { ProviderInstance } from './support.ts';

function supportOf(instance: ProviderInstance): ProviderSupport {
  const provider = builtinCatalogue().find(instance.name);
  assert.ok(provider, instance.name);
  return new ProviderSupport(provider, instance);
}

const CASES: readonly (readonly [string, ProviderInstance, Feature, readonly Trait[], string, string, string?])[] = [
  [
    'an old version',
    { name: 'cilium', version: 'v1.15.4-eksbuild.1' },
    'EndPort',
    [],
    'False',
    'FeatureNotSupported',
    'FailClosed',
  ],
  ['a later version', { name: 'cilium', version: '1.16.0' }, 'EndPort', [], 'True', 'Accepted'],
  [
    'a version before the release that changes it',
    { name: 'cilium', version: '1.16.0-rc.1' },
    'EndPort',
    [],
    'Unknown',
    'ProviderVersionUnknown',
  ],
  ['a version before another release', { name: 'cilium', version: '1.17.0-rc.1' }, 'EndPort', [], 'True', 'Accepted'],
  ['a patch release after the newest', { name: 'cilium', version: '1.20.9' }, 'EndPort', [], 'True', 'Accepted'],
  [
    'a version newer than the catalogue',
    { name: 'cilium', version: '1.21.0' },
    'EndPort',
    [],
    'Unknown',
    'NotInCatalogue',
  ],
  ['no version, and it matters', { name: 'cilium' }, 'EndPort', [], 'Unknown', 'ProviderVersionUnknown'],
  ['no version, and it does not matter', { name: 'cilium' }, 'IPBlock', [], 'True', 'Accepted'],
  ['the least that the version can be', { name: 'cilium', version: '>=1.9.0' }, 'Enforcement', [], 'True', 'Accepted'],
  ['the least, after the last change', { name: 'cilium', version: '>=1.16.0' }, 'EndPort', [], 'True', 'Accepted'],
  [
    'the least, after the catalogue',
    { name: 'cilium', version: '>=1.21.0' },
    'Enforcement',
    [],
    'Unknown',
    'NotInCatalogue',
  ],
  [
    'the least, before a change',
    { name: 'cilium', version: '>=1.9.0' },
    'EndPort',
    [],
    'Unknown',
    'ProviderVersionUnknown',
  ],
  [
    'the least, and a fault of some versions after it',
    { name: 'cilium', version: '>=1.9.0' },
    'IPBlock',
    ['Ingress'],
    'Unknown',
    'ProviderVersionUnknown',
    'FailOpen',
  ],
  [
    'a digest as version',
    { name: 'cilium', version: 'sha256:0123' },
    'EndPort',
    [],
    'Unknown',
    'ProviderVersionUnknown',
  ],
  [
    'a setting that is not known, with a bad default',
    { name: 'cilium', version: '1.15.0' },
    'SCTP',
    [],
    'Unknown',
    'SettingUnknown',
    'FailClosed',
  ],
  [
    'a setting that is set',
    { name: 'cilium', version: '1.15.0', settings: { 'enable-sctp': 'true' } },
    'SCTP',
    [],
    'True',
    'Accepted',
  ],
  [
    'a setting with its default',
    { name: 'cilium', version: '1.15.0', hasOtherDefaults: true },
    'SCTP',
    [],
    'False',
    'FeatureNotSupported',
    'FailClosed',
  ],
  [
    'a list as setting',
    { name: 'cilium', version: '1.20.0', settings: { 'policy-cidr-match-mode': 'pods,nodes' } },
    'IPBlockOfPods',
    [],
    'True',
    'Accepted',
  ],
  [
    'a setting of Object.prototype',
    { name: 'cilium', version: '1.15.0', settings: {} },
    'SCTP',
    [],
    'Unknown',
    'SettingUnknown',
    'FailClosed',
  ],
  [
    'a provider that is turned off',
    { name: 'cilium', version: '1.15.0', settings: { 'enable-policy': 'never' } },
    'Enforcement',
    [],
    'False',
    'ProviderDisabled',
    'Inert',
  ],
  [
    'a provider that is off by default',
    { name: 'aws-vpc-cni', version: '1.4.0', hasOtherDefaults: true },
    'Enforcement',
    [],
    'False',
    'ProviderDisabled',
    'Inert',
  ],
  [
    'a provider that may be off',
    { name: 'aws-vpc-cni', version: '1.4.0' },
    'Enforcement',
    [],
    'Unknown',
    'SettingUnknown',
    'Inert',
  ],
  [
    'a setting that nobody can change',
    { name: 'aks-cilium', version: '1.20.0', settings: { 'policy-cidr-match-mode': 'pods' } },
    'IPBlockOfPods',
    [],
    'False',
    'FeatureNotSupported',
    'FailClosed',
  ],
  ['a use that is supported', { name: 'cilium', version: '1.15.0' }, 'NamedPort', ['Ingress'], 'True', 'Accepted'],
  [
    'a use that depends on the cluster',
    { name: 'cilium', version: '1.15.0' },
    'NamedPort',
    ['Egress'],
    'Unknown',
    'DependsOnCluster',
    'FailClosed',
  ],
  [
    'a use that is not supported',
    { name: 'aws-vpc-cni', version: '1.4.0' },
    'NamedPort',
    ['Egress', 'EgressToAnyPeer'],
    'False',
    'FeatureNotSupported',
    'FailClosed',
  ],
  [
    'what nobody examined',
    { name: 'gke-dataplane-v2', version: '1.30.1-gke.100' },
    'EndPort',
    [],
    'Unknown',
    'NotInCatalogue',
  ],
  [
    'a version of k3s instead of its kube-router',
    { name: 'k3s-netpol', version: 'v1.30.4+k3s1' },
    'EndPort',
    [],
    'Unknown',
    'NotInCatalogue',
  ],
  [
    'kindnetd before kind 0.24',
    { name: 'kindnet', version: 'v20240513-cfc1f8ab' },
    'Enforcement',
    [],
    'False',
    'FeatureNotSupported',
    'Inert',
  ],
  [
    'kindnetd of a later kind',
    { name: 'kindnet', version: 'v20250512-df8de77b' },
    'Enforcement',
    [],
    'True',
    'Accepted',
  ],
];

describe('what a provider supports', () => {
  for (const [name, instance, feature, traits, status, reason, effect] of CASES) {
    it(`${name}: ${feature} of ${instance.name} is ${status}`, () => {
      const support = supportOf(instance).of(feature, traits);
      assert.deepEqual(
        [support.status, support.reason, support.effect],
        [status, reason, status === 'True' ? undefined : effect],
      );
    });
  }

  it('names the settings whose defaults it assumes', () => {
    assert.deepEqual(supportOf({ name: 'cilium', version: '1.16.0' }).assumptions, [
      'enable-policy is not "never"',
      'enable-k8s-networkpolicy is not "false"',
    ]);
    assert.deepEqual(supportOf({ name: 'cilium', version: '1.16.0', hasOtherDefaults: true }).assumptions, []);
    assert.deepEqual(supportOf({ name: 'aws-vpc-cni', version: '1.4.0' }).assumptions, []);
  });
});
