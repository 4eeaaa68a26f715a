import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readClusterFacts } from './cluster-facts.ts';
import { featureUses } from './feature-uses.ts';
import { readNetworkPolicy } from './network-policy.ts';

const node = (podCIDRs: readonly string[], ...addresses: readonly string[]) => ({
  spec: { podCIDRs },
  status: { addresses: [{ type: 'Hostname', address: 'n1' }, ...addresses.map((address) => ({ address }))] },
});
const pod = (...ips: readonly string[]) => ({ spec: {}, status: { podIPs: ips.map((ip) => ({ ip })) } });

/** Which local addresses a block has: `?` for those that it may have. */
function local(cidr: string, nodes: readonly unknown[] | undefined, pods: readonly unknown[]): string {
  const policy = readNetworkPolicy({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'p' },
    spec: { podSelector: {}, ingress: [{ from: [{ ipBlock: { cidr } }] }] },
  });
  return featureUses(policy, readClusterFacts(nodes, pods))
    .filter(({ feature }) => feature.startsWith('IPBlockOf'))
    .map(({ feature, isPossible }) => `${feature.slice('IPBlockOf'.length)}${isPossible === true ? '?' : ''}`)
    .join(' ');
}

const NODES = [
  node(['10.244.0.0/24', 'fd00:1::/64'], '192.0.2.1'),
  node(['10.244.1.0/24'], '192.0.2.2', '2001:db8::2'),
];

describe('the addresses of a cluster', () => {
  for (const [cidr, nodes, pods, expected] of [
    ['10.244.1.0/24', NODES, [pod('10.244.0.7')], 'Pods'],
    ['0.0.0.0/0', NODES, [pod('10.244.0.7')], 'Pods Nodes'],
    ['10.99.0.0/16', NODES, [pod('10.244.0.7')], ''],
    ['192.0.2.0/24', NODES, [pod('10.244.0.7')], 'Nodes'],
    ['2001:db8::/32', NODES, [pod('10.244.0.7')], 'Nodes'],
    ['fd00:1::/48', NODES, [pod('10.244.0.7', 'fd00:1::7')], 'Pods'],
    // Pods with addresses of a provider's own choice.
    ['10.99.0.0/16', NODES, [pod('10.99.0.7')], 'Pods'],
    ['10.244.1.0/24', NODES, [pod('10.99.0.7')], 'Pods?'],
    // Nothing shows where the addresses of pods come from.
    ['10.244.1.0/24', NODES, [], 'Pods?'],
    ['10.244.1.0/24', [node([], '192.0.2.1')], [pod('10.244.1.7')], 'Pods'],
    ['198.51.100.0/24', undefined, [], ''],
    ['192.168.0.0/16', undefined, [], 'Pods? Nodes?'],
    ['192.168.0.0/16', [], [], 'Pods? Nodes?'],
  ] as const) {
    it(`make ${cidr} a block of ${expected || 'none'}`, () => assert.equal(local(cidr, nodes, pods), expected));
  }

  it('do not include those of pods in the network of their host', () => {
    const host = { ...pod('192.0.2.1'), spec: { hostNetwork: true } };
    assert.equal(local('192.0.2.0/24', NODES, [host]), 'Nodes');
  });

  it('are read from any values without an error', () => {
    assert.deepEqual(
      readClusterFacts([null, 1, { spec: { podCIDRs: 'x' }, status: { addresses: [null, 'x'] } }], ['x', {}]),
      {
        podAddresses: [],
        nodeCidrs: [],
      },
    );
  });
});
