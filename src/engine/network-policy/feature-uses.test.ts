import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonValue } from '../values/json-text.ts';
import type { Feature, Trait } from './feature.ts';
import { featureUses } from './feature-uses.ts';
import type { ClusterFacts } from './feature-uses.ts';
import { readNetworkPolicy } from './network-policy.ts';
import { workloadFacts } from './pod-facts.ts';

function traitsOf(spec: JsonValue, feature: Feature, facts?: ClusterFacts): readonly (readonly Trait[])[] {
  const metadata = { name: 'p', namespace: 'shop' };
  const policy = readNetworkPolicy({ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata, spec });
  return featureUses(policy, facts)
    .filter((use) => use.feature === feature)
    .map(({ traits }) => traits);
}

function has(trait: Trait, expected: boolean, spec: JsonValue, feature: Feature, facts?: ClusterFacts): void {
  const found = traitsOf(spec, feature, facts).some((traits) => traits.includes(trait));
  assert.equal(found, expected, `${trait} ${JSON.stringify(spec)}`);
}

const ingress = (...ports: JsonValue[]): JsonValue => ({ podSelector: {}, ingress: [{ ports }] });
const from = (...peers: JsonValue[]): JsonValue => ({ podSelector: {}, ingress: [{ from: peers }] });
const to = (...peers: JsonValue[]): JsonValue => ({
  podSelector: {},
  policyTypes: ['Egress'],
  egress: [{ to: peers }],
});
const block = (cidr: string, ...except: string[]): JsonValue => ({
  ipBlock: { cidr, ...(except.length > 0 && { except }) },
});
const namespaces = (...matchExpressions: JsonValue[]): JsonValue => ({ namespaceSelector: { matchExpressions } });

describe('the traits of a use', () => {
  for (const [name, ports, feature, expected] of [
    ['all ports beside a number', [{ protocol: 'TCP' }, { port: 80 }], 'PortWithoutNumber', true],
    ['all ports by default beside a number', [{}, { port: 80 }], 'PortWithoutNumber', true],
    ['all ports alone', [{}], 'PortWithoutNumber', false],
    ['all ports beside a number of another protocol', [{ protocol: 'UDP' }, { port: 80 }], 'PortWithoutNumber', false],
    ['a name beside a number', [{ port: 'web' }, { port: 80, protocol: 'TCP' }], 'NamedPort', true],
    ['a name beside another', [{ port: 'web' }, { port: 'metrics' }], 'NamedPort', false],
  ] as const) {
    it(`of ports: ${name}`, () => has('BesideNumberedPort', expected, ingress(...ports), feature));
  }

  it('of SCTP: whether the entry has a port', () => {
    has('WithNumber', true, ingress({ protocol: 'SCTP', port: 80 }), 'SCTP');
    has('WithNumber', false, ingress({ protocol: 'SCTP' }), 'SCTP');
  });

  it('of exceptions: overlaps are found among thousands of blocks, and taken for granted among too many pairs', () => {
    const many = Array.from({ length: 2_000 }, (_, index) => block(`10.${index >> 8}.${index & 255}.0/24`));
    const everything = block('0.0.0.0/0', '192.168.0.0/16');
    has('OverlappingBlocks', false, to(everything, ...many), 'IPBlockExcept');
    has('OverlappingBlocks', true, to(everything, ...many, block('192.168.7.0/24')), 'IPBlockExcept');
    const exceptions = Array.from({ length: 300 }, (_, index) => `172.16.${index & 255}.${index >> 8}/32`);
    const holed = Array.from({ length: 300 }, () => block('172.16.0.0/12', ...exceptions));
    has('OverlappingBlocks', true, to(...holed), 'IPBlockExcept');
  });

  it('of blocks: others in the rule, selectors, exceptions that others have, bits after the prefix', () => {
    has('BesideBlocks', true, from(block('10.0.0.0/8'), block('192.0.2.0/24')), 'IPBlock');
    has('BesideBlocks', false, from(block('10.0.0.0/8'), { podSelector: {} }), 'IPBlock');
    has('BesideSelectors', true, from(block('10.0.0.0/8', '10.1.0.0/16'), { podSelector: {} }), 'IPBlockExcept');
    has('BesideSelectors', false, from(block('10.0.0.0/8', '10.1.0.0/16')), 'IPBlockExcept');
    has('OverlappingBlocks', true, to(block('0.0.0.0/0', '10.1.0.0/16'), block('10.1.2.0/24')), 'IPBlockExcept');
    has('OverlappingBlocks', false, to(block('0.0.0.0/0', '10.1.0.0/16'), block('10.2.0.0/24')), 'IPBlockExcept');
    has('HostBits', true, from(block('10.161.0.0/8')), 'IPBlock');
    has('HostBits', true, from(block('fd00::1/64')), 'IPBlock');
    has('HostBits', false, from(block('10.0.0.0/8')), 'IPBlock');
    has('HostBits', false, from(block('10.0.0.1/32')), 'IPBlock');
  });

  it('of blocks in several rules of a direction: an exception is about all of them', () => {
    const rules = [{ to: [block('0.0.0.0/0', '10.0.0.0/8')] }, { to: [block('10.96.0.10/32')] }];
    has('OverlappingBlocks', true, { podSelector: {}, policyTypes: ['Egress'], egress: rules }, 'IPBlockExcept');
    const other = { podSelector: {}, ingress: [{ from: [block('10.96.0.10/32')] }], egress: rules.slice(0, 1) };
    has('OverlappingBlocks', false, other, 'IPBlockExcept');
  });

  it('of a direction: blocks that are there twice, and ranges with one start', () => {
    const egress = (...rules: JsonValue[]): JsonValue => ({ podSelector: {}, policyTypes: ['Egress'], egress: rules });
    has('SameBlock', true, egress({ to: [block('10.0.0.0/8')] }, { to: [block('10.0.0.0/8')] }), 'IPBlock');
    has('SameBlock', false, egress({ to: [block('10.0.0.0/8')] }, { to: [block('10.0.0.0/9')] }), 'IPBlock');
    const [short, long] = [
      { port: 80, endPort: 90 },
      { port: 80, endPort: 99 },
    ];
    has('SameStart', true, egress({ ports: [short] }, { ports: [long] }), 'EndPort');
    has('SameStart', false, egress({ ports: [short] }, { ports: [short] }), 'EndPort');
    has('SameStart', false, egress({ ports: [short, { ...long, protocol: 'UDP' }] }), 'EndPort');
  });

  it('of selectors: one value or several, negative ones only', () => {
    const not = { key: 'team', operator: 'NotIn', values: ['red'] };
    const several = { key: 'team', operator: 'NotIn', values: ['red', 'blue'] };
    has('NotInSeveralValues', true, from(namespaces(several)), 'NamespaceSelector');
    has('NotInSeveralValues', false, from(namespaces(not)), 'NamespaceSelector');
    has('NotInSeveralValues', true, from({ podSelector: { matchExpressions: [several] } }), 'Enforcement');
    has('NotInSeveralValues', false, from(namespaces(several)), 'Enforcement');
    has(
      'InSeveralValues',
      true,
      { podSelector: { matchExpressions: [{ ...several, operator: 'In' }] } },
      'Enforcement',
    );
    has('InSeveralValues', false, { podSelector: { matchLabels: { team: 'red' } } }, 'Enforcement');
    const missing = { key: 'team', operator: 'DoesNotExist' };
    has('DoesNotExist', true, to(namespaces(missing)), 'NamespaceSelector');
    has('NegativeNamespaceSelector', true, to(namespaces(missing, not)), 'NamespaceSelector');
    has(
      'NegativeNamespaceSelector',
      false,
      to(namespaces(missing, { key: 'a', operator: 'Exists' })),
      'NamespaceSelector',
    );
    has('NegativeNamespaceSelector', false, to({ namespaceSelector: {} }), 'NamespaceSelector');
    has('Egress', true, to({ ...(namespaces(not) as object), podSelector: {} }), 'NamespaceAndPodSelector');
  });

  it('of a direction: whether it allows nothing', () => {
    has('AllowsNothing', true, { podSelector: {}, policyTypes: ['Egress'] }, 'Egress');
    has('AllowsNothing', false, { podSelector: {}, policyTypes: ['Egress'], egress: [{}] }, 'Egress');
    has('AllowsNothing', true, { podSelector: {}, policyTypes: ['Ingress', 'Egress'], egress: [{}] }, 'Ingress');
  });

  const sidecar = { name: 'agent', restartPolicy: 'Always', ports: [{ name: 'metrics', containerPort: 8099 }] };
  const database = (kind: string, containers: JsonValue): object => {
    const pod = { metadata: { labels: { app: 'db' } }, spec: containers };
    const metadata = { name: 'db', namespace: 'shop' };
    return kind === 'Pod'
      ? { kind, metadata: { ...metadata, ...pod.metadata }, spec: pod.spec }
      : { kind, metadata, spec: { template: pod } };
  };

  for (const [name, kind, containers, app, port, expected] of [
    ['a sidecar of a selected pod', 'Pod', { initContainers: [sidecar] }, 'db', 'metrics', true],
    ['a sidecar of a selected workload', 'StatefulSet', { initContainers: [sidecar] }, 'db', 'metrics', true],
    ['another port', 'Pod', { initContainers: [sidecar] }, 'db', 'web', false],
    ['a sidecar of another pod', 'Pod', { initContainers: [sidecar] }, 'other', 'metrics', false],
    [
      'an init container that ends',
      'Pod',
      { initContainers: [{ ...sidecar, restartPolicy: undefined }] },
      'db',
      'metrics',
      false,
    ],
    ['a container', 'Pod', { containers: [sidecar] }, 'db', 'metrics', false],
  ] as const) {
    it(`of a named port: ${name}`, () => {
      const facts = workloadFacts([database(kind, containers as unknown as JsonValue)]);
      const spec = { podSelector: { matchLabels: { app } }, ingress: [{ ports: [{ port }] }] };
      has('SidecarPort', expected, spec, 'NamedPort', facts);
    });
  }

  const pod = (labels: object, namespace = 'shop'): object => ({
    kind: 'Pod',
    metadata: { namespace, labels },
    spec: {},
  });
  const service = (selector: object, namespace = 'shop'): object => ({
    kind: 'Service',
    metadata: { namespace },
    spec: { selector },
  });
  const data = { podSelector: { matchLabels: { tier: 'data' } } };

  for (const [name, objects, peer, expected] of [
    ['a Service without the label', [pod({ app: 'db', tier: 'data' }), service({ app: 'db' })], data, true],
    ['a Service with the label', [pod({ app: 'db', tier: 'data' }), service({ app: 'db', tier: 'data' })], data, false],
    ['a Service of other pods', [pod({ app: 'db', tier: 'data' }), service({ app: 'web' })], data, false],
    [
      'a Service of another namespace',
      [pod({ app: 'db', tier: 'data' }, 'a'), service({ app: 'db' }, 'a')],
      data,
      false,
    ],
    [
      'a Service of a namespace that may be meant',
      [pod({ app: 'db', tier: 'data' }, 'a'), service({ app: 'db' }, 'a')],
      { ...data, namespaceSelector: {} },
      true,
    ],
    ['all pods', [pod({ app: 'db' }), service({ app: 'db' })], { podSelector: {} }, false],
  ] as const) {
    it(`of egress to pods behind ${name}`, () => {
      has('ServiceWithoutLabel', expected, to(peer), 'Egress', workloadFacts(objects));
    });
  }
});
