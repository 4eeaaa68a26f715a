import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import { isNetworkPolicy, readNetworkPolicy } from './network-policy.ts';

function policy(spec: unknown, more: JsonObject = {}): JsonObject {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'p', namespace: 'shop' },
    spec: spec as JsonValue,
    ...more,
  };
}

const read = (spec: unknown) => readNetworkPolicy(policy(spec));
const peer = (value: unknown) => ({ ingress: [{ from: [value] }] });
const port = (value: unknown) => ({ ingress: [{ ports: [value] }] });

describe('a NetworkPolicy with its defaults', () => {
  for (const [name, spec, directions] of [
    ['no policyTypes', {}, ['Ingress']],
    ['no policyTypes but rules for egress', { egress: [{}] }, ['Ingress', 'Egress']],
    ['no policyTypes and no rule for egress', { egress: [] }, ['Ingress']],
    ['empty policyTypes', { policyTypes: [], egress: [{}] }, ['Ingress', 'Egress']],
    ['policyTypes', { policyTypes: ['Egress'] }, ['Egress']],
    ['no spec', undefined, ['Ingress']],
  ] as const) {
    it(`isolates ${directions.join(' and ')} with ${name}`, () =>
      assert.deepEqual([...read(spec).directions.keys()], directions));
  }

  it('has the protocol TCP, written or not', () => {
    const [one, two] =
      read({ ingress: [{ ports: [{ port: 80 }, { protocol: 'TCP', port: 80 }] }] }).rules[0]?.ports ?? [];
    assert.deepEqual([one?.protocol, two?.protocol], ['TCP', 'TCP']);
  });

  it('names rules without effect', () => {
    const { rules, rulesWithoutEffect } = read({ policyTypes: ['Ingress'], ingress: [{}], egress: [{}, {}] });
    assert.deepEqual([rules.length, rulesWithoutEffect], [1, ['spec.egress[0]', 'spec.egress[1]']]);
  });

  it('counts endPort fields that kubectl sent and the object lacks', () => {
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{"a":[{"endPort":9},{"endPort":8}]}' };
    const metadata = { name: 'p', annotations };
    assert.equal(readNetworkPolicy(policy(port({ port: 80, endPort: 90 }), { metadata })).droppedEndPorts, 1);
    assert.equal(read(port({ port: 80, endPort: 90 })).droppedEndPorts, 0);
  });
});

describe('what is not known', () => {
  for (const [spec, path] of [
    [{ podSelectors: {} }, 'spec.podSelectors'],
    [{ ingress: [{ froms: [] }] }, 'spec.ingress[0].froms'],
    [peer({ serviceAccountSelector: {} }), 'spec.ingress[0].from[0].serviceAccountSelector'],
    [peer({}), 'spec.ingress[0].from[0]'],
    [peer({ ipBlock: { cidr: '10.0.0.0/8' }, podSelector: {} }), 'spec.ingress[0].from[0]'],
    [peer({ ipBlock: { cidr: '10.0.0.0/8', only: [] } }), 'spec.ingress[0].from[0].ipBlock.only'],
    [peer({ ipBlock: { cidr: '10.0.0.0' } }), 'spec.ingress[0].from[0].ipBlock.cidr'],
    [peer({ ipBlock: {} }), 'spec.ingress[0].from[0].ipBlock'],
    [peer({ ipBlock: { cidr: '10.0.0.0/8', except: ['x'] } }), 'spec.ingress[0].from[0].ipBlock.except[0]'],
    [peer({ podSelector: { matchFields: [] } }), 'spec.ingress[0].from[0].podSelector.matchFields'],
    [
      peer({ podSelector: { matchExpressions: [{ key: 'a', operator: 'Near' }] } }),
      'spec.ingress[0].from[0].podSelector.matchExpressions[0].operator',
    ],
    [port({ protocol: 'ICMP' }), 'spec.ingress[0].ports[0].protocol'],
    [port({ port: 80, ports: [] }), 'spec.ingress[0].ports[0].ports'],
    [port({ port: 0 }), 'spec.ingress[0].ports[0].port'],
    [port({ port: {} }), 'spec.ingress[0].ports[0].port'],
    [port({ endPort: 90 }), 'spec.ingress[0].ports[0].endPort'],
    [port({ port: 'web', endPort: 90 }), 'spec.ingress[0].ports[0].endPort'],
    [port(null), 'spec.ingress[0].ports[0]'],
    [{ ingress: [null] }, 'spec.ingress[0]'],
    [{ ingress: {} }, 'spec.ingress'],
    [{ policyTypes: ['Both'] }, 'spec.policyTypes[0]'],
    [[], 'spec'],
    ['text', 'spec'],
  ] as const) {
    it(`is reported at ${path} of ${JSON.stringify(spec)}`, () => {
      assert.ok(
        read(spec).unread.some((one) => one.path === path),
        JSON.stringify(read(spec).unread),
      );
    });
  }

  it('includes other versions of the API', () => {
    const object = { ...policy({}), apiVersion: 'networking.k8s.io/v2' };
    assert.ok(isNetworkPolicy(object));
    assert.deepEqual(
      readNetworkPolicy(object).unread.map(({ path }) => path),
      ['apiVersion'],
    );
  });

  it('is not of other kinds', () => {
    assert.ok(!isNetworkPolicy({ apiVersion: 'crd.projectcalico.org/v1', kind: 'NetworkPolicy' }));
    assert.ok(!isNetworkPolicy({ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress' }));
    assert.ok(!isNetworkPolicy([]));
  });

  it('is bounded, and a value that contains itself ends', () => {
    const spec: JsonObject = {};
    const hostile: JsonObject = { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', spec };
    hostile['metadata'] = hostile;
    Object.assign(spec, { podSelector: spec, ingress: [spec, hostile], egress: [{ to: [spec] }] });
    assert.ok(readNetworkPolicy(hostile).unread.length > 0);
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`${'k'.repeat(1000)}${index}`, 1]));
    const { unread } = read(many);
    assert.equal(unread.length, 20);
    assert.ok(unread.every(({ path }) => path.length <= 120));
  });

  const block = (cidr: string, except: readonly string[] = []) => ({ ipBlock: { cidr, except } });
  const texts = (count: number): string[] =>
    Array.from({ length: count }, (_, index) => `10.${index >> 8}.${index & 255}.0/24`);
  const many = (count: number, part: unknown): unknown[] => Array.from({ length: count }, () => part);
  for (const [name, spec] of [
    ['rules', { ingress: many(20_000, {}) }],
    ['peers', { ingress: [{ from: many(20_000, { podSelector: {} }) }] }],
    ['ports', { ingress: [{ ports: many(20_000, { port: 80 }) }] }],
    ['exceptions', peer(block('10.0.0.0/8', texts(20_000)))],
    [
      'labels',
      { podSelector: { matchLabels: Object.fromEntries(texts(20_000).map((_, index) => [`l${index}`, 'a'])) } },
    ],
    ['values', peer({ podSelector: { matchExpressions: [{ key: 'a', operator: 'In', values: many(20_000, 'a') }] } })],
  ] as const) {
    it(`is examined up to a number of parts: ${name}`, () => {
      const { unread, rules, podSelector } = read(spec);
      assert.match(unread[0]?.message ?? '', /^the policy has more than 10000 rules, peers, ports/);
      const parts = rules.flatMap(({ peers, ports }) => [
        ...peers.flatMap((one): readonly object[] => one.ipBlock?.except ?? [one]),
        ...ports,
      ]);
      assert.ok(rules.length + parts.length + podSelector.requirements.length <= 10_000);
    });
  }

  it('is examined with one element of each list, since an empty list means something else', () => {
    const rule = { to: many(20_000, { podSelector: {} }), ports: many(20_000, { port: 80 }) };
    const { rules } = read({ ingress: many(20_000, {}), egress: [rule, rule] });
    const [one, ...others] = rules.filter(({ direction }) => direction === 'Egress');
    assert.deepEqual([others.length, one?.peers.length, one?.ports.length], [0, 1, 1]);
  });

  it('is examined whole with the list of addresses of a cloud provider', () => {
    const { unread, rules } = read({
      egress: [{ to: texts(9_000).map((cidr) => block(cidr)), ports: [{ port: 443 }] }],
    });
    assert.deepEqual(unread, []);
    assert.equal(rules[0]?.peers.length, 9_000);
  });
});
