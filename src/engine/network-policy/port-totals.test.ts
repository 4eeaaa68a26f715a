import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonValue } from '../values/json-text.ts';
import { readNetworkPolicy } from './network-policy.ts';
import { portTotals } from './port-totals.ts';

function totals(spec: JsonValue): readonly (readonly [string, number])[] {
  const metadata = { name: 'p', namespace: 'shop' };
  const policy = readNetworkPolicy({ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata, spec });
  return portTotals(policy).map(({ peer, entries }) => [peer, entries]);
}

const blocks = (count: number): JsonValue[] =>
  Array.from({ length: count }, (_, index) => ({ ipBlock: { cidr: `10.${index >> 8}.${index & 255}.0/24` } }));
const ports = (count: number, first = 1): JsonValue[] =>
  Array.from({ length: count }, (_, index) => ({ port: first + index }));

describe('the port entries for a peer', () => {
  it('are counted once, over all rules of the direction', () => {
    const web = { podSelector: { matchLabels: { app: 'web' } } };
    const ingress = [
      { from: [web, web], ports: [{ port: 80 }, { port: 80 }, { port: 'metrics' }] },
      { from: [web, { podSelector: {} }], ports: [{ port: 80 }, { port: 443 }] },
      { from: [{ namespaceSelector: {} }] },
    ];
    assert.deepEqual(totals({ podSelector: {}, ingress, egress: [{ ports: [{ port: 80 }] }] }), [
      ['pods app=web', 3],
      ['all pods', 2],
      ['all pods of all namespaces', 1],
      ['all peers', 1],
    ]);
  });

  it('take no memory for each pair of a peer and a port', () => {
    const egress = [{ to: blocks(3_000), ports: ports(5_000) }];
    const found = totals({ podSelector: {}, policyTypes: ['Egress'], egress });
    assert.equal(found.length, 3_000);
    assert.ok(found.every(([, entries]) => entries === 5_000));
  });

  it('are at least those of the largest rule where too many would have to be compared', () => {
    const to = blocks(1_000);
    const egress = [1, 2_001, 4_001].map((first) => ({ to, ports: ports(2_000, first) }));
    const found = totals({ podSelector: {}, policyTypes: ['Egress'], egress }).map(([, entries]) => entries);
    assert.equal(found[0], 6_000);
    assert.equal(found.at(-1), 2_000);
  });
});
