import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonValue } from '../values/json-text.ts';
import { findingsOf, mistakesOf } from './findings.ts';
import { readNetworkPolicy } from './network-policy.ts';
import type { NetworkPolicy } from './network-policy.ts';
import { isCovered, NetworkPolicySet } from './redundant.ts';

function policy(name: string, spec: unknown, namespace = 'shop'): NetworkPolicy {
  const metadata = { name, namespace };
  return readNetworkPolicy({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata,
    spec: spec as JsonValue,
  });
}

const app = (value: string) => ({ matchLabels: { app: value } });

describe('findings about a policy', () => {
  const web = policy('web', { podSelector: app('web'), ingress: [{}] });
  const pods = [
    { namespace: 'shop', labels: { app: 'web' }, hostNetwork: true },
    { namespace: 'shop', labels: { app: 'web' } },
    { namespace: 'other', labels: { app: 'db' } },
  ];

  it('say nothing about pods that are not known', () => assert.deepEqual(findingsOf(web), []));

  it('say how many selected pods are in the network of their host', () => {
    assert.deepEqual(
      findingsOf(web, pods).map(({ message }) => message),
      ['has no effect on 1 of 2 pods: they are in the network of their host'],
    );
  });

  it('say that no pod is selected', () => {
    const db = policy('db', { podSelector: app('db'), ingress: [{}] });
    assert.deepEqual(
      findingsOf(db, pods).map(({ type, message }) => [type, message]),
      [['SelectsNoPod', 'selects no pod now: shop has none with app=db']],
    );
  });

  it('say what is isolated without being allowed, and which rules have no effect', () => {
    const deny = policy('deny', { policyTypes: ['Ingress', 'Egress'] });
    assert.deepEqual(
      findingsOf(deny).map(({ message }) => message),
      ['isolates ingress and egress and allows none: only other policies can allow some'],
    );
    const wrong = policy('wrong', { policyTypes: ['Ingress'], ingress: [{}], egress: [{}] });
    assert.deepEqual(
      findingsOf(wrong).map(({ type, paths }) => [type, paths]),
      [['RulesWithoutEffect', ['spec.egress[0]']]],
    );
  });
});

describe('a CIDR with bits beyond its prefix', () => {
  it('is a mistake, in the words of API servers', () => {
    const block = { ipBlock: { cidr: '10.161.0.0/8', except: ['10.1.2.3/16', '10.2.0.0/16'] } };
    const [finding, ...others] = mistakesOf(policy('p', { egress: [{ to: [block] }] }));
    assert.deepEqual(others, []);
    assert.equal(finding?.type, 'AmbiguousCidr');
    assert.match(
      finding.message,
      /"10\.161\.0\.0\/8" is ambiguous in this context \(should be "10\.0\.0\.0\/8" or "10\.161/,
    );
    const path = 'spec.egress[0].to[0].ipBlock';
    assert.deepEqual(finding.paths, [`${path}.cidr`, `${path}.except[0]`]);
  });

  for (const cidr of ['2001:db8::1/32', '::ffff:10.0.0.0/104', '2001:DB8::/32']) {
    it(`is a mistake: ${cidr}`, () => {
      const found = mistakesOf(policy('p', { ingress: [{ from: [{ ipBlock: { cidr } }] }] }));
      assert.deepEqual(
        found.map(({ type }) => type),
        ['AmbiguousCidr'],
      );
    });
  }
});

const allow = (peers: readonly unknown[], ports: readonly unknown[] = []) => ({
  podSelector: app('web'),
  ingress: [{ from: peers, ports }],
});
const block = (cidr: string, ...except: readonly string[]) => ({ ipBlock: { cidr, except } });

describe('a policy is covered by another', () => {
  for (const [name, inner, outer, expected] of [
    ['that is equal', allow([{ podSelector: {} }]), allow([{ podSelector: {} }]), true],
    ['that selects all pods', allow([]), { ingress: [{}] }, true],
    ['not if it selects other pods', allow([]), { podSelector: app('db'), ingress: [{}] }, false],
    ['not if it selects fewer pods', { ingress: [{}] }, allow([]), false],
    [
      'with the labels as an expression',
      allow([]),
      { podSelector: { matchExpressions: [{ key: 'app', operator: 'In', values: ['web'] }] }, ingress: [{}] },
      true,
    ],
    [
      'not if it does not isolate the direction',
      { podSelector: app('web'), policyTypes: ['Egress'] },
      allow([]),
      false,
    ],
    ['that allows more ports', allow([], [{ port: 80 }]), allow([], [{ port: 1, endPort: 100 }]), true],
    ['not with another protocol', allow([], [{ port: 80 }]), allow([], [{ port: 80, protocol: 'UDP' }]), false],
    [
      'not with part of the range',
      allow([], [{ port: 80, endPort: 90 }]),
      allow([], [{ port: 80, endPort: 85 }]),
      false,
    ],
    ['not with a name for a number', allow([], [{ port: 80 }]), allow([], [{ port: 'web' }]), false],
    ['that allows all TCP ports', allow([], [{ port: 'web' }]), allow([], [{ protocol: 'TCP' }]), true],
    ['not if all ports are allowed', allow([]), allow([], [{ port: 80 }]), false],
    ['that allows a larger block', allow([block('10.1.0.0/16')]), allow([block('10.0.0.0/8')]), true],
    [
      'not if the block has an exception inside',
      allow([block('10.1.0.0/16')]),
      allow([block('10.0.0.0/8', '10.1.2.0/24')]),
      false,
    ],
    ['if the exception is outside', allow([block('10.1.0.0/16')]), allow([block('10.0.0.0/8', '10.2.0.0/24')]), true],
    [
      'if both have the exception',
      allow([block('10.1.0.0/16', '10.1.2.0/23')]),
      allow([block('10.0.0.0/8', '10.1.2.0/24')]),
      true,
    ],
    ['not if everybody is allowed', allow([]), allow([block('0.0.0.0/0')]), false],
    [
      'not with pods of all namespaces for those of its own',
      allow([{ namespaceSelector: {} }]),
      allow([{ podSelector: {} }]),
      false,
    ],
    ['not if something is not known', { ...allow([]), future: 1 }, allow([]), false],
  ] as const) {
    it(name, () => assert.equal(isCovered(policy('inner', inner), policy('outer', outer)), expected));
  }

  it('of its namespace', () => assert.ok(!isCovered(policy('a', allow([])), policy('b', allow([]), 'other'))));
});

describe('a set of policies', () => {
  it('names the policy that makes another one redundant, and keeps one of two equal ones', () => {
    const [all, one, twin] = [
      policy('all', { ingress: [{}] }),
      policy('one', allow([])),
      policy('twin', { ingress: [{}] }),
    ];
    const set = new NetworkPolicySet([all, one, twin]);
    assert.equal(set.redundancy(all), undefined);
    assert.equal(
      set.redundancy(one)?.message,
      'changes nothing: all isolates the same pods and allows at least the same',
    );
    assert.equal(
      set.redundancy(twin)?.message,
      'changes nothing: all isolates the same pods and allows at least the same',
    );
  });

  it('compares a bounded number of policies and rules', () => {
    const peers = Array.from({ length: 300 }, (_, index) => block(`10.${index % 250}.0.0/24`));
    const many = Array.from({ length: 300 }, (_, index) =>
      policy(`p${index}`, allow(peers.toReversed(), [{ port: index + 1 }])),
    );
    const set = new NetworkPolicySet(many);
    assert.deepEqual(
      many.filter((one) => set.redundancy(one) !== undefined),
      [],
    );
  });

  it('keeps one of two equal ones, however many rules were compared before', () => {
    for (let size = 1; size <= 100; size += 1) {
      const ingress = Array.from({ length: size }, (_, rule) => ({ from: [{ podSelector: app(`client-${rule}`) }] }));
      const [one, twin] = [policy('one', { ingress }), policy('twin', { ingress })];
      const set = new NetworkPolicySet([one, twin]);
      assert.equal(set.redundancy(one), undefined, `with ${size} rules`);
    }
  });

  it('compares a bounded number of rules without peers, of exceptions and of requirements', () => {
    const holes = Array.from({ length: 3_000 }, (_, index) => `10.${index >> 8}.${index & 255}.0/24`);
    const labels = Object.fromEntries(Array.from({ length: 3_000 }, (_, index) => [`label-${index}`, 'a']));
    const others = Array.from({ length: 3_000 }, () => ({ from: [{ podSelector: app('client') }] }));
    for (const [inner, outer] of [
      [{ ingress: Array.from({ length: 3_000 }, () => ({})) }, { ingress: [...others, {}] }],
      [allow([block('10.0.0.0/8', ...holes)]), allow([block('10.0.0.0/8', ...holes)])],
      [allow([{ podSelector: { matchLabels: labels } }]), allow([{ podSelector: { matchLabels: labels } }])],
    ] as const) {
      assert.ok(!isCovered(policy('inner', inner), policy('outer', outer)));
    }
  });
});
