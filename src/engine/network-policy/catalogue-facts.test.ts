import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import { builtinCatalogue } from './builtin-catalogue.ts';
import type { Feature } from './feature.ts';
import { readNetworkPolicy } from './network-policy.ts';
import { workloadFacts } from './pod-facts.ts';
import { ProviderSupport } from './support.ts';
import { analysePolicy, judgePolicy } from './verdict.ts';
import type { ProviderVerdict } from './verdict.ts';

/** `cilium@1.19.3,enable-policy=default`, as on the command line. */
function judge(spec: JsonObject, provider: string, objects: readonly object[] = []): ProviderVerdict {
  const [, name = '', version, flags = ''] = /^([^@,]+)(?:@([^,]+))?(?:,(.*))?$/.exec(provider) ?? [];
  const settings = Object.fromEntries(flags.split(',').flatMap((flag) => (flag === '' ? [] : [flag.split('=')])));
  const found = builtinCatalogue().find(name) ?? assert.fail(name);
  const metadata = { name: 'p', namespace: 'shop' };
  const policy = readNetworkPolicy({ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata, spec });
  const facts = { podCidrs: [], nodeCidrs: [], ...workloadFacts(objects) };
  const instance = { name, settings, ...(version === undefined ? {} : { version }) };
  return judgePolicy(analysePolicy(policy, facts), new ProviderSupport(found, instance));
}

const ingress = (...rules: JsonValue[]): JsonObject => ({ podSelector: {}, policyTypes: ['Ingress'], ingress: rules });
const egress = (...rules: JsonValue[]): JsonObject => ({ podSelector: {}, policyTypes: ['Egress'], egress: rules });
const ports = (...entries: JsonValue[]): JsonObject => ingress({ from: [{ podSelector: {} }], ports: entries });
const block = (cidr: string, ...except: string[]): JsonObject => ({
  ipBlock: { cidr, ...(except.length === 0 ? {} : { except }) },
});
const namespaces = (...matchExpressions: JsonValue[]): JsonObject => ({ namespaceSelector: { matchExpressions } });
const labelled = (team: string): JsonObject => ({ namespaceSelector: { matchLabels: { team } } });
const NOT_SEVERAL = { key: 'team', operator: 'NotIn', values: ['red', 'blue'] };
const NOT_ONE = { key: 'team', operator: 'NotIn', values: ['red'] };
const MISSING = { key: 'team', operator: 'DoesNotExist' };
const SCTP = ports({ protocol: 'SCTP', port: 7777 });
const NAMED = ports({ protocol: 'TCP', port: 'web' });
const V6 = ingress({ from: [block('fd4f:a16a:42::/56'), { podSelector: {} }], ports: [{ port: 443 }] });
const TWO_BLOCKS = egress({ to: [block('0.0.0.0/0', '10.42.0.0/16'), { podSelector: {} }, block('10.42.7.0/24')] });
const BESIDE_PODS = egress({ to: [block('0.0.0.0/0', '10.42.0.0/16'), { podSelector: {} }] });
const DENY_EGRESS = { podSelector: {}, policyTypes: ['Egress'] };
const PLAIN = ingress({ from: [{ podSelector: {} }] });
const AWS = 'enable-network-policy=true';

type Expected = 'accepted' | `${Feature} ${string}` | `warns ${string}`;

/** What the provider does: accepts without a word, fails a feature with an effect, or warns with a text. */
const FACTS: readonly (readonly [string, JsonObject, Readonly<Record<string, Expected>>])[] = [
  [
    'SCTP with a port',
    SCTP,
    {
      'cilium@1.12.19': 'SCTP PolicyDropped',
      'cilium@1.13.0,enable-sctp=false': 'SCTP FailClosed',
      'calico@3.11.3': 'SCTP PolicyDropped',
      'calico@3.12.0': 'accepted',
    },
  ],
  ['SCTP without a port', ports({ protocol: 'SCTP' }), { 'calico@3.11.3': 'accepted' }],
  [
    'all ports beside a number',
    ports({ protocol: 'TCP' }, { protocol: 'TCP', port: 80 }),
    {
      'calico@3.18.5': 'PortWithoutNumber FailClosed',
      'calico@3.29.0': 'accepted',
      'ovn-kubernetes@1.3.0': 'PortWithoutNumber FailClosed',
    },
  ],
  [
    'all ports beside a number, by default',
    ports({}, { port: 80 }),
    { 'calico@3.18.5': 'PortWithoutNumber FailClosed' },
  ],
  [
    'all ports',
    ports({}),
    {
      'calico@3.18.5': 'accepted',
      'ovn-kubernetes@1.3.0': 'accepted',
      'kube-ovn@1.8.4': 'PortWithoutNumber PolicyDropped',
      'kube-ovn@1.9.0': 'accepted',
    },
  ],
  [
    'a named port',
    NAMED,
    {
      'kube-router@0.2.5': 'NamedPort PolicyDropped',
      'kube-ovn@1.11.0': 'NamedPort FailClosed',
      'ovn-kubernetes@1.3.0': 'NamedPort FailOpen',
    },
  ],
  [
    'a named port beside a number',
    ports({ port: 'web' }, { port: 80 }),
    { 'ovn-kubernetes@1.3.0': 'NamedPort FailClosed' },
  ],
  [
    'a named port beside a number of UDP',
    ports({ port: 'web' }, { protocol: 'UDP', port: 80 }),
    {
      'ovn-kubernetes@1.3.0': 'NamedPort FailOpen',
    },
  ],
  [
    'a plain policy',
    PLAIN,
    {
      'kindnet@1.3.0': 'Enforcement Inert',
      'kindnet@1.4.0': 'Enforcement Inert',
      'kindnet@1.5.0,network-policy=false': 'Enforcement Inert',
      'kindnet@1.5.0,network-policy=False': 'Enforcement Inert',
      'kube-router@2.11.1,run-firewall=0': 'Enforcement Inert',
      'k3s-netpol@2.6.3,disable-network-policy=1': 'Enforcement Inert',
      'aws-vpc-cni@1.4.1,enable-network-policy=True': 'warns without an owner',
      'gke-dataplane-v2@v1.14.1-gke.3': 'warns CVE-2023-39347',
      'kindnet@1.5.0': 'accepted',
      'kindnet@v20240813-c6f155d6': 'accepted',
      'kindnet@v20240813-c6f155d6,network-policy=false': 'Enforcement Inert',
      'cilium@1.14.1': 'warns CVE-2023-39347',
      'cilium@1.13.0': 'warns CVE-2023-27595',
      'cilium@1.12.7,enable-ipv6=true': 'warns CVE-2023-27594, versions <1.11.15 || >=1.12.0 <1.12.8',
      'cilium@1.18.7': 'warns CVE-2026-33726, versions <1.17.14 || >=1.18.0 <1.18.8 || >=1.19.0 <1.19.2',
      'cilium@1.18.8': 'accepted',
      'cilium@1.18.7,enable-endpoint-routes=false': 'accepted',
      'kube-router@2.1.0': 'warns if pods have IPv6 addresses',
      'antrea@2.4.2': 'warns CVE-2026-25804',
      'antrea@2.3.2': 'accepted',
      antrea:
        'warns Antrea may be a version with known faults, since it is not known which one runs: GHSA-86x4-wp9f-wrr9',
      'cilium@>=1.9.0': 'warns which one runs: GHSA-gj2r-phwg-6rww, GHSA-r5x6-w42p-jhpp',
    },
  ],
  [
    'a block for ingress',
    ingress({ from: [block('203.0.113.0/24')] }),
    {
      'weave-net@2.4.0': 'IPBlock FailOpen',
      'cilium@1.18.9': 'accepted',
      'cilium@1.19.3,policy-default-local-cluster=true': 'IPBlock FailOpen',
      'cilium@1.19.3': 'IPBlock FailOpen',
      'aks-cilium@1.19.3': 'IPBlock FailOpen',
      'gke-dataplane-v2@v1.19.3-gke.1': 'warns if GKE has not fixed it in its build',
      'gke-dataplane-v2@v1.19.5-gke.1': 'accepted',
      'cilium@1.19.4,policy-default-local-cluster=false': 'accepted',
      'cilium@1.19.5': 'accepted',
    },
  ],
  [
    'a block for egress',
    egress({ to: [block('203.0.113.0/24')] }),
    {
      'cilium@1.17.1': 'warns CVE-2025-30162, versions >=1.15.0 <1.15.15 || >=1.16.0 <1.16.8 || >=1.17.0 <1.17.2',
      'cilium@1.17.1,enable-gateway-api=false': 'accepted',
      'cilium@1.17.2': 'accepted',
      'weave-net@2.4.0': 'accepted',
      'cilium@1.19.3': 'accepted',
    },
  ],
  [
    'a block with ports',
    ingress({ from: [block('203.0.113.0/24')], ports: [{ port: 80 }] }),
    {
      'weave-net@2.5.0': 'warns masqueraded',
    },
  ],
  [
    'an IPv6 block',
    V6,
    {
      'kube-router@1.6.0': 'IPv6 PolicyDropped',
      'kube-router@2.0.1': 'accepted',
      'kube-router@2.1.0': 'IPv6 PolicyDropped',
      'kube-router@2.1.1': 'accepted',
      'kube-router@2.6.1': 'IPv6 FailOpen',
      'kube-router@2.6.2': 'accepted',
      'k3s-netpol@2.6.1': 'IPv6 FailOpen',
    },
  ],
  [
    'an exception beside pods',
    BESIDE_PODS,
    {
      'kube-ovn@1.15.4': 'IPBlockExcept FailClosed',
      'kube-ovn@1.15.5': 'accepted',
    },
  ],
  [
    'an exception alone',
    egress({ to: [block('0.0.0.0/0', '10.42.0.0/16')] }),
    {
      'kube-ovn@1.15.4': 'accepted',
      'aws-vpc-cni@1.2.3,enable-network-policy=true': 'warns without an owner',
      'azure-npm@1.5.40': 'warns edited',
    },
  ],
  [
    'several blocks',
    TWO_BLOCKS,
    {
      'kube-ovn@1.15.4': 'IPBlockExcept FailClosed',
      'kube-ovn@1.15.5': 'IPBlock FailClosed',
      'kube-ovn@1.15.7': 'IPBlock FailClosed',
      'kube-ovn@1.15.9': 'accepted',
      'kube-ovn@1.16.0': 'accepted',
      'aws-vpc-cni@1.2.3,enable-network-policy=true': 'IPBlockExcept FailOpen',
    },
  ],
  [
    'a CIDR with host bits',
    egress({ to: [block('10.161.0.0/8')], ports: [{ port: 443 }] }),
    {
      'aws-vpc-cni@1.3.4,enable-network-policy=true': 'warns another block of its pods is the same network',
      'aws-vpc-cni@1.4.1,enable-network-policy=true': 'warns without an owner',
    },
  ],
  [
    'NotIn with several values',
    ingress({ from: [namespaces(NOT_SEVERAL)] }),
    { 'azure-npm@1.6.29': 'NamespaceSelector FailOpen' },
  ],
  ['NotIn with one value', egress({ to: [namespaces(NOT_ONE)] }), { 'azure-npm@1.6.29': 'NamespaceSelector FailOpen' }],
  [
    'DoesNotExist',
    egress({ to: [namespaces(MISSING)] }),
    {
      'azure-npm@1.6.29': 'NamespaceSelector FailOpen',
      'cilium@1.20.2,policy-default-local-cluster=false': 'NamespaceSelector FailOpen',
      'cilium@1.20.2,policy-default-local-cluster=true': 'accepted',
      'cilium@1.20.2': 'warns policy-default-local-cluster is "false", which is not the default',
    },
  ],
  [
    'NotIn beside a label',
    egress({ to: [namespaces(NOT_ONE, { key: 'env', operator: 'Exists' })] }),
    {
      'azure-npm@1.6.29,EnableNPMLite=false': 'accepted',
      'azure-npm@1.6.29': 'warns if EnableNPMLite is "true", which is not the default',
      'azure-npm@1.5.40': 'accepted',
    },
  ],
  [
    'a label of namespaces',
    ingress({ from: [labelled('red')] }),
    {
      'cilium@1.12.0': 'warns GHSA-pfhr-pccp-hwmh',
      'cilium@1.11.8': 'warns CVE-2023-39347',
    },
  ],
  [
    'In with several values',
    { ...DENY_EGRESS, podSelector: { matchExpressions: [{ ...NOT_SEVERAL, operator: 'In' }] } },
    {
      'azure-npm@1.2.1': 'Enforcement PolicyDropped',
      'azure-npm@1.4.0': 'accepted',
    },
  ],
  [
    'deny-all egress',
    DENY_EGRESS,
    {
      'antrea@0.3.0': 'warns CVE-2026-25804',
      'antrea@0.4.1': 'Egress FailOpen',
      'antrea@0.5.0': 'Egress FailOpen',
      'antrea@0.5.1': 'warns CVE-2026-25804',
    },
  ],
  [
    'egress to a block with a range of ports',
    egress({ to: [block('203.0.113.0/24')], ports: [{ port: 8000, endPort: 8010 }] }),
    {
      'openshift-sdn@4.9.0': 'Egress FailOpen',
      'openshift-sdn@4.10.0': 'warns only in the mode NetworkPolicy',
      'gke-dataplane-v2@v1.15.10-gke.9': 'EndPort FailClosed',
      'gke-dataplane-v2@v1.16.5-gke.1': 'accepted',
      'azure-npm-lite@1.6.29': 'accepted',
      'antrea-windows@2.7.0': 'warns AntreaProxy',
    },
  ],
  [
    'a CIDR in two rules',
    egress({ to: [block('172.20.0.0/16')], ports: [{ protocol: 'UDP', port: 53 }] }, { to: [block('172.20.0.0/16')] }),
    {
      'aws-vpc-cni@1.4.1,enable-network-policy=true': 'warns takes the ports and exceptions of one rule',
      'calico@3.31.0': 'accepted',
    },
  ],
  [
    'an exception with a block in another rule',
    egress({ to: [block('10.96.0.10/32')] }, { to: [block('0.0.0.0/0', '10.0.0.0/8')] }),
    {
      'kube-ovn@1.12.0': 'warns takes the addresses of an exception out of other rules',
      'kube-ovn@1.15.9': 'accepted',
    },
  ],
  [
    'two ranges with one start',
    egress({ ports: [{ port: 8000, endPort: 8010 }] }, { ports: [{ port: 8000, endPort: 8100 }] }),
    { 'cilium@1.20.2': 'warns begin with the same one', 'calico@3.31.0': 'accepted' },
  ],
  [
    'a peer of pods',
    PLAIN,
    {
      'azure-npm-lite@1.6.29': 'Enforcement PolicyDropped',
      'terway,policy=absent': 'Enforcement Inert',
      'terway,policy=present': 'warns exclusive ENIs',
      'terway,policy=present,disable_network_policy=true': 'Enforcement Inert',
      'terway,policy=present,disable_network_policy=yes': 'Enforcement Inert',
      'terway,policy=present,disable_network_policy=0': 'warns exclusive ENIs',
      'azure-npm@1.6.29': 'warns if EnableNPMLite is "true", which is not the default',
      'azure-npm@1.6.29,EnableNPMLite=true': 'Enforcement PolicyDropped',
      'antrea-windows@0.6.0': 'Enforcement Inert',
    },
  ],
];

describe('the facts of the catalogue', () => {
  for (const [name, spec, providers] of FACTS) {
    for (const [provider, expected] of Object.entries(providers)) {
      it(`${provider} and ${name}: ${expected}`, () => check(judge(spec, provider), expected));
    }
  }

  const sidecar = { name: 'agent', restartPolicy: 'Always', ports: [{ name: 'metrics', containerPort: 8099 }] };
  const database = {
    kind: 'Pod',
    metadata: { namespace: 'shop', labels: { app: 'db' } },
    spec: { initContainers: [sidecar] },
  };
  for (const [provider, expected] of [
    ['calico@3.28.0', 'NamedPort FailClosed'],
    ['calico@3.29.0', 'accepted'],
    ['kube-ovn@1.13.0', 'NamedPort FailClosed'],
    ['antrea@2.5.0', 'warns names of ports of sidecars'],
    ['kube-network-policies@1.1.1', 'NamedPort FailClosed'],
    ['azure-npm@1.6.29', 'NamedPort FailClosed'],
    ['aws-vpc-cni@1.4.1,enable-network-policy=true', 'warns whose version is not visible'],
  ] as const) {
    it(`${provider} and a named port of a sidecar: ${expected}`, () => {
      const spec = { ...ports({ protocol: 'TCP', port: 'metrics' }), podSelector: { matchLabels: { app: 'db' } } };
      check(judge(spec, provider, [database]), expected);
    });
  }

  it('warns of a Service whose selector lacks labels of the peer on Amazon VPC CNI', () => {
    const objects = [
      { kind: 'Service', metadata: { namespace: 'shop' }, spec: { selector: { app: 'db' } } },
      { kind: 'Pod', metadata: { namespace: 'shop', labels: { app: 'db', tier: 'data' } }, spec: {} },
    ];
    const spec = egress({ to: [{ podSelector: { matchLabels: { tier: 'data' } } }], ports: [{ port: 5432 }] });
    check(judge(spec, `aws-vpc-cni@1.4.1,${AWS}`, objects), 'warns selector lacks labels of the peer');
  });

  it('reads a list of Cilium that is joined by spaces', () => {
    const metadata = { name: 'p', namespace: 'shop' };
    const spec = egress({ to: [block('10.0.0.0/8')] });
    const policy = readNetworkPolicy({ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata, spec });
    const cilium = builtinCatalogue().find('cilium') ?? assert.fail();
    const settings = { 'policy-cidr-match-mode': 'nodes pods' };
    const support = new ProviderSupport(cilium, { name: 'cilium', version: '1.20.2', settings });
    const facts = { podCidrs: ['10.0.0.0/8'], nodeCidrs: ['10.0.0.0/8'] };
    assert.equal(judgePolicy(analysePolicy(policy, facts), support).accepted, 'True');
  });
});

function check(verdict: ProviderVerdict, expected: Expected): void {
  const [first = '', ...rest] = expected.split(' ');
  const warnings = verdict.warnings.map(({ message }) => message);
  if (first === 'accepted') {
    assert.deepEqual([verdict.accepted, warnings], ['True', []], verdict.message);
  } else if (first === 'warns') {
    assert.equal(verdict.accepted, 'True', verdict.message);
    assert.ok(warnings.join('\n').includes(rest.join(' ')), warnings.join('\n'));
  } else {
    const feature = verdict.features.find(({ type }) => type === first);
    assert.deepEqual([feature?.status, feature?.effect], ['False', rest.join(' ')], verdict.message);
  }
}
