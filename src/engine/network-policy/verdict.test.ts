import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import type { JsonObject } from '../values/json-text.ts';
import { parseYaml } from '../../values/yaml/index.ts';
import { builtinCatalogue } from './builtin-catalogue.ts';
import type { Feature } from './feature.ts';
import { FEATURES } from './feature.ts';
import { featureUses } from './feature-uses.ts';
import type { ClusterFacts } from './feature-uses.ts';
import { readNetworkPolicy } from './network-policy.ts';
import { ProviderSupport } from './support.ts';
import type { ProviderInstance } from './support.ts';
import { analysePolicy, judgePolicy } from './verdict.ts';
import type { ProviderVerdict } from './verdict.ts';

const FIXTURE = new URL('../../../test/fixtures/network-policies/documented.yaml', import.meta.url);
const documented = new Map(
  (parseYaml(readFileSync(FIXTURE, 'utf8')) as { metadata: { name: string } }[])
    .filter((one) => one !== null)
    .map((object) => [object.metadata.name, object as unknown as JsonObject]),
);

function judge(name: string, instance: ProviderInstance, facts?: ClusterFacts): ProviderVerdict {
  const object = documented.get(name);
  const provider = builtinCatalogue().find(instance.name);
  assert.ok(object && provider);
  return judgePolicy(analysePolicy(readNetworkPolicy(object), facts), new ProviderSupport(provider, instance));
}

const REFERENCE = { name: 'kube-network-policies', version: '1.1.1' };
const COMMON: readonly Feature[] = ['Enforcement', 'Ingress', 'Egress', 'PortCount'];

/** The features of each documented shape, without the common ones and those that depend on the cluster. */
const USES: Readonly<Record<string, readonly Feature[]>> = {
  'everything-at-once': ['NamespaceSelector', 'IPBlock', 'IPBlockExcept'],
  'namespace-and-pod': ['NamespaceSelector', 'NamespaceAndPodSelector'],
  'namespace-or-pod': ['NamespaceSelector'],
  'deny-ingress': [],
  'allow-ingress': [],
  'deny-egress': [],
  'allow-egress': [],
  'deny-all': [],
  'port-range': ['EndPort', 'IPBlock'],
  'several-namespaces': ['NamespaceSelector'],
  'namespace-by-name': ['NamespaceSelector'],
  sctp: ['SCTP'],
  'deny-all-of-an-app': [],
  'limit-to-an-app': [],
  'allow-all-of-an-app': [],
  'deny-other-namespaces': [],
  'allow-all-namespaces': ['NamespaceSelector'],
  'allow-production': ['NamespaceSelector'],
  'monitoring-from-operations': ['NamespaceSelector', 'NamespaceAndPodSelector'],
  'external-clients': [],
  'one-port': [],
  'several-apps': [],
  'no-egress-of-an-app': [],
  'dns-only': [],
  'dns-in-kube-system': ['NamespaceSelector', 'NamespaceAndPodSelector'],
  'cluster-only': ['NamespaceSelector'],
  'named-port': ['NamedPort'],
  'named-egress-port': ['NamedPort'],
  'internet-without-private': ['IPBlock', 'IPBlockExcept'],
  'block-metadata-service': ['IPBlock', 'IPBlockExcept'],
  'ipv6-block': ['IPBlock', 'IPBlockExcept', 'IPv6'],
  'many-ports': ['IPBlock'],
  'whole-protocol': ['PortWithoutNumber'],
  'empty-port': ['PortWithoutNumber'],
  'not-in': ['NamespaceSelector'],
  'from-ingress-controller': ['NamespaceSelector'],
  'from-host-network': ['NamespaceSelector'],
  'from-same-namespace-and-monitoring': ['NamespaceSelector'],
};

describe('policies as public documentation shows them', () => {
  it('are at least 30', () => {
    assert.ok(documented.size >= 30);
    assert.deepEqual([...documented.keys()].toSorted(), Object.keys(USES).toSorted());
  });

  for (const [name, expected] of Object.entries(USES)) {
    it(`${name} uses ${expected.join(', ') || 'nothing special'}`, () => {
      const policy = readNetworkPolicy(documented.get(name) ?? {});
      assert.deepEqual(policy.unread, []);
      const used = new Set(
        featureUses(policy)
          .filter((use) => use.isPossible !== true)
          .map(({ feature }) => feature),
      );
      assert.deepEqual(
        FEATURES.filter((one) => used.has(one) && !COMMON.includes(one)),
        FEATURES.filter((one) => expected.includes(one)),
      );
    });

    it(`${name} is implemented by the reference implementation`, () => {
      const { accepted, message } = judge(name, REFERENCE);
      assert.deepEqual([accepted, message], ['True', 'kube-network-policies 1.1.1 does what the policy says']);
    });

    it(`${name} is inert with Flannel alone`, () => {
      const { accepted, effect, features } = judge(name, { name: 'flannel', version: '0.26.0' });
      assert.deepEqual([accepted, effect, features.map(({ type }) => type)], ['False', 'Inert', ['Enforcement']]);
    });

    it(`${name} is never accepted by a version that nobody has examined`, () => {
      for (const provider of builtinCatalogue().providers.filter(({ latest }) => latest !== undefined)) {
        assert.notEqual(judge(name, { name: provider.name, version: '99999999.0.0' }).accepted, 'True');
      }
    });
  }
});

const AWS = { name: 'aws-vpc-cni', version: 'v1.4.1', settings: { 'enable-network-policy': 'true' } };

describe('the sentence for a person', () => {
  for (const [name, instance, accepted, message] of [
    [
      'port-range',
      { name: 'cilium', version: 'v1.15.4' },
      'False',
      'Cilium 1.15.4 allows only port 32000, not 32000 to 32768',
    ],
    [
      'named-port',
      { name: 'ovn-kubernetes', version: '1.3.0' },
      'False',
      'OVN-Kubernetes 1.3.0 allows all TCP ports, not only TCP port "metrics"',
    ],
    [
      'named-port',
      { name: 'weave-net', version: '2.8.1' },
      'False',
      'Weave Net 2.8.1 ignores the whole policy because of TCP port "metrics": its pods are open unless another policy isolates them',
    ],
    [
      'named-egress-port',
      { name: 'cilium', version: '1.15.4' },
      'Unknown',
      'Cilium 1.15.4 supports named ports (TCP port "postgres"), but not if the same name stands for different numbers in the cluster: then it allows less than written',
    ],
    [
      'sctp',
      { name: 'cilium', version: '1.15.4' },
      'Unknown',
      'Cilium 1.15.4 supports SCTP (SCTP port 7777) only if enable-sctp is "true", which is not the default; otherwise it allows less than written',
    ],
    ['many-ports', AWS, 'False', 'Amazon VPC CNI 1.4.1 allows at most 24 of the 26 port entries for 198.51.100.0/24'],
    [
      'internet-without-private',
      { ...AWS, version: '1.2.0' },
      'True',
      /^accepted with a warning: Amazon VPC CNI 1\.2\.0: pods without an owner/,
    ],
    [
      'ipv6-block',
      { name: 'weave-net', version: '2.8.1' },
      'False',
      'Weave Net 2.8.1 ignores spec.egress[0] because of 2001:db8::/32',
    ],
    [
      'internet-without-private',
      { name: 'azure-npm-windows', version: '1.6.29' },
      'False',
      'Azure NPM for Windows 1.6.29 ignores the whole policy because of the exception 10.0.0.0/8, the exception 172.16.0.0/12 and 1 more: its pods are open unless another policy isolates them',
    ],
    ['deny-all', { name: 'flannel', version: '0.26.0' }, 'False', 'Flannel alone 0.26.0 enforces no NetworkPolicy'],
    [
      'deny-all',
      { name: 'cilium', version: '1.15.0', settings: { 'enable-policy': 'never' } },
      'False',
      'Cilium 1.15.0 enforces no NetworkPolicy: enable-policy is "never"',
    ],
    [
      'deny-all',
      { name: 'cilium', version: '1.99.0' },
      'Unknown',
      'it is unknown whether Cilium 1.99.0 enforces NetworkPolicies: the catalogue ends at 1.20.2',
    ],
    [
      'not-in',
      { name: 'azure-npm-windows', version: '1.6.0' },
      'False',
      /^Azure NPM for Windows 1\.6\.0 ignores the whole policy because of NotIn or DoesNotExist: /,
    ],
    [
      'limit-to-an-app',
      { name: 'azure-npm-lite', version: '1.6.29' },
      'False',
      'Azure NPM Lite 1.6.29 ignores the whole policy because of a peer with podSelector: its pods are open unless another policy isolates them',
    ],
  ] as const) {
    it(`${name} on ${instance.name} ${instance.version}`, () => {
      const verdict = judge(name, instance);
      assert.equal(verdict.accepted, accepted);
      if (typeof message === 'string') {
        assert.equal(verdict.message, message);
      } else {
        assert.match(verdict.message, message);
      }
    });
  }

  it('has the paths, the evidence and the sources', () => {
    const { features } = judge('port-range', { name: 'cilium', version: '1.15.4' });
    const endPort = features.find(({ type }) => type === 'EndPort');
    assert.deepEqual(endPort?.paths, ['spec.egress[0].ports[0].endPort']);
    assert.equal(endPort?.evidence, 'Code');
    assert.ok(endPort?.sources?.every((source) => source.startsWith('https://')));
    assert.equal(new Set(features.map(({ type }) => type)).size, features.length, 'each type is there once');
  });

  it('stays short for hostile names', () => {
    const ports = Array.from({ length: 5000 }, (_, index) => ({ port: `${'x'.repeat(5000)}${index}` }));
    const policy = readNetworkPolicy({
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: {},
      spec: { ingress: [{ ports }] },
    });
    const provider = builtinCatalogue().find('ovn-kubernetes');
    assert.ok(provider);
    const verdict = judgePolicy(
      analysePolicy(policy),
      new ProviderSupport(provider, { name: 'ovn-kubernetes', version: '1.0.0' }),
    );
    assert.ok(verdict.message.length <= 1024);
    assert.ok(verdict.features.every(({ paths, message }) => paths.length <= 20 && message.length <= 1024));
  });
});

describe('what depends on the cluster', () => {
  // Settings that rule out advisories of this version.
  const settings = { 'enable-endpoint-routes': 'false', 'enable-gateway-api': 'false' };
  const cilium = { name: 'cilium', version: '1.15.4', settings };

  it('is a warning while the cluster is not known', () => {
    const { accepted, warnings } = judge('everything-at-once', cilium);
    assert.equal(accepted, 'True');
    assert.deepEqual(
      warnings.map(({ message }) => message),
      [
        'Cilium 1.15.4 does not match IPs of pods with an ipBlock: pods in 172.17.0.0/16 and 10.0.0.0/24 are not allowed',
        'Cilium 1.15.4 does not match IPs of nodes with an ipBlock: nodes in 172.17.0.0/16 and 10.0.0.0/24 are not allowed, unless policy-cidr-match-mode contains "nodes", which is not the default',
      ],
    );
  });

  it('is never accepted without a word: the message has the warnings', () => {
    assert.match(
      judge('everything-at-once', cilium).message,
      /^accepted with a warning: Cilium 1\.15\.4 does not match/,
    );
    for (const { accepted, warnings, message } of [...documented.keys()].flatMap((name) =>
      builtinCatalogue().providers.map(({ name: provider, latest = '1.0.0' }) =>
        judge(name, { name: provider, version: latest }),
      ),
    )) {
      const isSaidToDoIt = message.includes('does what the policy says');
      assert.equal(isSaidToDoIt, accepted === 'True' && warnings.length === 0, message);
    }
  });

  it('decides once the cluster is known', () => {
    const inside = judge('everything-at-once', cilium, { podCidrs: ['10.0.0.0/16'], nodeCidrs: ['192.0.2.1'] });
    assert.deepEqual([inside.accepted, inside.warnings], ['False', []]);
    assert.match(inside.message, /pods in 10\.0\.0\.0\/24 are not allowed$/);
    const outside = judge('everything-at-once', cilium, { podCidrs: ['100.64.0.0/10'], nodeCidrs: ['192.0.2.1'] });
    assert.deepEqual([outside.accepted, outside.warnings], ['True', []]);
  });

  it('includes the map of an endpoint, with the figures', () => {
    const { accepted, warnings } = judge('many-ports', cilium, { identities: 1000, podCidrs: [], nodeCidrs: [] });
    assert.equal(accepted, 'True');
    assert.deepEqual(
      warnings.map(({ message }) => message),
      [
        'Cilium 1.15.4 has 16384 entries for each pod (bpf-policy-map-max): 26 port entries fit 630 peer identities, and there are 1000',
      ],
    );
    const larger = { ...cilium, settings: { ...cilium.settings, 'bpf-policy-map-max': '65536' } };
    assert.deepEqual(judge('many-ports', larger, { identities: 1000, podCidrs: [], nodeCidrs: [] }).warnings, []);
  });
});

describe('uses of one feature that differ', () => {
  for (const ports of [
    [{}, { protocol: 'UDP' }, { port: 80 }],
    [{ protocol: 'UDP' }, { port: 80 }, {}],
  ]) {
    it(`are as good as the worst of ${JSON.stringify(ports)}, which alone has a path`, () => {
      const policy: JsonObject = {
        apiVersion: 'networking.k8s.io/v1',
        kind: 'NetworkPolicy',
        metadata: { name: 'p' },
        spec: { podSelector: {}, ingress: [{ ports }] },
      };
      const provider = builtinCatalogue().find('calico') ?? assert.fail();
      const support = new ProviderSupport(provider, { name: 'calico', version: '3.10.0' });
      const { accepted, features } = judgePolicy(analysePolicy(readNetworkPolicy(policy)), support);
      assert.equal(accepted, 'False');
      const index = ports.findIndex((port) => Object.keys(port).length === 0);
      assert.deepEqual(features.find(({ type }) => type === 'PortWithoutNumber')?.paths, [
        `spec.ingress[0].ports[${index}]`,
      ]);
    });
  }
});

describe('a caution about some uses', () => {
  for (const [direction, rules, count] of [
    ['Ingress', { ingress: [{ from: [{ ipBlock: { cidr: '203.0.113.0/24' } }] }] }, 1],
    ['Egress', { egress: [{ to: [{ ipBlock: { cidr: '203.0.113.0/24' } }] }] }, 0],
  ] as const) {
    it(`is ${count === 1 ? 'shown' : 'not shown'} for ${direction}`, () => {
      const policy = { metadata: { name: 'p' }, spec: { podSelector: {}, policyTypes: [direction], ...rules } };
      const provider = builtinCatalogue().find('weave-net') ?? assert.fail();
      const support = new ProviderSupport(provider, { name: 'weave-net', version: '2.8.1' });
      const { warnings } = judgePolicy(analysePolicy(readNetworkPolicy(policy as unknown as JsonObject)), support);
      assert.equal(warnings.filter(({ message }) => message.includes('masqueraded')).length, count);
    });
  }
});
