import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { builtinCatalogue } from '../engine/network-policy/index.ts';
import { findCondition, type KubernetesObject, type NetworkPolicyProvider } from '../resources/index.ts';
import { readAgentPod } from './agent-pod.ts';
import { isApplied } from './applied-status.ts';
import { networkPolicyStatusFields } from './policy-status.ts';
import type { StatusFields } from './status-terms.ts';
import { type ClusterProviders, clusterProviders } from './cluster-providers.ts';
import { agentPod, rangePolicy, type SamplePod } from './testing/sample-cluster.ts';

const NOW = Date.parse('2026-11-24T08:00:00Z');

interface Sample {
  readonly pods?: readonly SamplePod[];
  readonly nodes?: readonly KubernetesObject[];
  readonly declared?: readonly NetworkPolicyProvider[];
}

function known({ pods = [], nodes = [], declared = [] }: Sample, now = NOW): ClusterProviders {
  const agents = pods.flatMap((pod) => readAgentPod(agentPod(pod)) ?? []);
  return clusterProviders({ pods: agents, nodes, configMaps: [], declared }, builtinCatalogue(), now);
}

function declare(name: string, spec: Partial<NetworkPolicyProvider['spec']> = {}): NetworkPolicyProvider {
  const metadata = { name };
  return {
    apiVersion: 'portcullis.dev/v1',
    kind: 'NetworkPolicyProvider',
    metadata,
    spec: { presence: 'Detected', ...spec },
  };
}

function node(name: string, creationTimestamp: string): KubernetesObject {
  return { apiVersion: 'v1', kind: 'Node', metadata: { name, creationTimestamp } };
}

function accepted(sample: Sample, policy = rangePolicy()): string {
  const { conditions } = networkPolicyStatusFields(policy, known(sample), undefined, NOW);
  const { status, reason } = findCondition(conditions, 'Accepted') ?? assert.fail('no condition');
  return `${status} ${reason}`;
}

const NEW = { image: 'quay.io/cilium/cilium:v1.16.0' };
/** Without an advisory on egress. */
const FIXED = { image: 'quay.io/cilium/cilium:v1.16.8' };

describe('the status of a policy', () => {
  const cases: readonly (readonly [string, Sample, string])[] = [
    ['without a provider', {}, 'Unknown ProviderNotFound'],
    ['with an old provider', { pods: [{}] }, 'False FeatureNotSupported'],
    ['with a new provider', { pods: [NEW] }, 'True Accepted'],
    ['during a rollout', { pods: [{}, { ...NEW, name: 'b' }] }, 'False FeatureNotSupported'],
    [
      'with a version that is not known',
      { pods: [{ image: 'cilium/cilium@sha256:00' }] },
      'Unknown ProviderVersionUnknown',
    ],
    ['with a version after the catalogue', { pods: [{ image: 'cilium/cilium:v1.99.0' }] }, 'Unknown NotInCatalogue'],
    ['with a declared version', { pods: [{}], declared: [declare('cilium', { version: '1.16.0' })] }, 'True Accepted'],
    [
      'with a provider that does not count',
      { pods: [{}], declared: [declare('cilium', { presence: 'Absent' })] },
      'Unknown ProviderNotFound',
    ],
    [
      'with a declared provider',
      { declared: [declare('calico', { presence: 'Present', version: '3.28.0' })] },
      'True Accepted',
    ],
    [
      'with a provider that the catalogue lacks',
      { declared: [declare('mine', { presence: 'Present' })] },
      'Unknown ProviderNotFound',
    ],
    [
      'with a setting that disables it',
      { pods: [NEW], declared: [declare('cilium', { settings: { 'enable-policy': 'never' } })] },
      'False ProviderDisabled',
    ],
    [
      'of two providers is the worse',
      { pods: [{}, { container: 'calico-node', image: 'calico/node:v3.28.0' }] },
      'False FeatureNotSupported',
    ],
    [
      'ignores what enforces nothing where another provider enforces',
      {
        pods: [
          { container: 'kube-flannel', image: 'flannel:v0.25.5', node: 'a' },
          { ...NEW, node: 'a' },
        ],
      },
      'True Accepted',
    ],
  ];
  for (const [name, sample, expected] of cases) {
    it(name, () => assert.equal(accepted(sample), expected));
  }

  it('names the features with a warning in a column, and has the warnings in its message', () => {
    const policy = {
      ...rangePolicy(),
      spec: { podSelector: {}, ingress: [{ from: [{ ipBlock: { cidr: '10.0.0.0/8' } }] }] },
    };
    const status = networkPolicyStatusFields(policy, known({ pods: [NEW] }), undefined, NOW);
    assert.match(status.summary?.warnings ?? '', /\bIPBlockOfPods, IPBlockOfNodes\b/);
    const message = findCondition(status.conditions, 'Accepted')?.message;
    assert.match(
      message ?? '',
      /^accepted with a warning: .*Cilium 1\.16\.0 does not match IPs of pods with an ipBlock/,
    );
    assert.equal(
      networkPolicyStatusFields(rangePolicy(), known({ pods: [FIXED] }), undefined, NOW).summary?.warnings,
      undefined,
    );
  });

  it('counts capabilities that an administrator declares, and none with mistakes', () => {
    const row = { versions: '*', support: 'Supported', evidence: 'Inferred', checked: '2026-11-24' };
    const valid = declare('cilium', { capabilities: { features: { EndPort: [row] } } });
    assert.equal(accepted({ pods: [{}], declared: [valid] }), 'True Accepted');
    const wrong = declare('cilium', { capabilities: { features: { EndPort: [{ ...row, support: 'Maybe' }] } } });
    assert.equal(accepted({ pods: [{}], declared: [wrong] }), 'False FeatureNotSupported');
    assert.match(known({ declared: [wrong] }).mistakes.get('cilium') ?? '', /features\.EndPort\[0\]\.support/);
  });

  const malformed: readonly (readonly [string, unknown])[] = [
    ['a text as spec', 'all'],
    ['a list as spec', []],
    ['rules that are none', { podSelector: {}, ingress: [5, null, []] }],
    ['a peer that selects nothing', { podSelector: {}, ingress: [{ from: [{}] }] }],
    ['a CIDR that is none', { podSelector: {}, egress: [{ to: [{ ipBlock: { cidr: '10.0.0.0/99' } }] }] }],
    ['a port that is none', { podSelector: {}, ingress: [{ ports: [{ port: 99_999 }] }] }],
    ['a selector that is none', { podSelector: { matchExpressions: [{ key: 'a', operator: 'Near' }] } }],
    ['a protocol that is not known', { podSelector: {}, ingress: [{ ports: [{ protocol: 'QUIC', port: 1 }] }] }],
    ['a type that is not known', { podSelector: {}, policyTypes: ['Sideways'] }],
  ];
  for (const [name, spec] of malformed) {
    it(`of a malformed policy is Unknown: ${name}`, () => {
      assert.equal(accepted({ pods: [NEW] }, { ...rangePolicy(), spec }), 'Unknown NotInCatalogue');
    });
  }

  it('loses the entry of a provider that is removed, and accepts none of an unknown reporter', () => {
    const calico = { name: 'c', container: 'calico-node', image: 'calico/node:v3.28.0' };
    const both = networkPolicyStatusFields(rangePolicy(), known({ pods: [{}, calico] }), undefined, NOW);
    const foreign = { controllerName: 'example.com/agent', conditions: [] };
    const before = { ...both, providers: [...(both.providers ?? []), foreign] };
    const after = networkPolicyStatusFields(rangePolicy(), known({ pods: [calico] }), before, NOW);
    const providers = after.providers?.map(({ controllerName }) => controllerName);
    assert.deepEqual(providers, ['projectcalico.org/felix']);
    assert.equal(after.summary?.providers, 'calico 3.28.0, example.com/agent');
    const condition = findCondition(after.conditions, 'Accepted');
    assert.deepEqual([condition?.status, condition?.reason], ['Unknown', 'ReporterUnknown']);
    assert.ok(!isApplied(before, after));
  });

  it('does not count declared capabilities whose ranges overlap', () => {
    const row = { support: 'Supported', evidence: 'Inferred', checked: '2026-11-24' };
    const EndPort = [
      { ...row, versions: '<2.0.0' },
      { ...row, versions: '>=1.0.0' },
    ];
    const wrong = declare('cilium', { capabilities: { features: { EndPort } } });
    assert.equal(accepted({ pods: [{}], declared: [wrong] }), 'False FeatureNotSupported');
    assert.match(known({ declared: [wrong] }).mistakes.get('cilium') ?? '', /overlaps/);
  });

  it('never accepts a field that the catalogue does not know', () => {
    const policy = rangePolicy();
    const spec = { ...(policy['spec'] as object), newField: true };
    assert.equal(accepted({ pods: [NEW] }, { ...policy, spec }), 'Unknown NotInCatalogue');
  });

  it('has findings whatever the provider, and warnings with figures', () => {
    const ports = Array.from({ length: 70 }, (_, index) => ({ port: 1000 + index }));
    const spec = { podSelector: {}, policyTypes: ['Ingress', 'Egress'], egress: [{ ports }] };
    const { providers, findings, summary, conditions } = networkPolicyStatusFields(
      { ...rangePolicy(), spec },
      known({ pods: [NEW] }),
      undefined,
      NOW,
    );
    assert.deepEqual(findings, [
      {
        type: 'AllowsNothing',
        message: 'isolates ingress and allows none: only other policies can allow some',
        paths: ['spec.policyTypes[0]'],
      },
    ]);
    assert.equal(summary?.findings, 'AllowsNothing');
    assert.equal(findCondition(conditions, 'Accepted')?.status, 'True');
    const [warning] = providers?.[0]?.warnings?.filter(({ type }) => type === 'PortCount') ?? [];
    assert.match(warning?.message ?? '', /16384 entries for each pod .*70 port entries fit 234 peer identities/);
  });

  it('exceeds a limit of one provider, with the figures', () => {
    const ports = Array.from({ length: 25 }, (_, index) => ({ port: 1000 + index }));
    const to = [{ ipBlock: { cidr: '203.0.113.0/24' } }];
    const spec = { podSelector: {}, policyTypes: ['Egress'], egress: [{ to, ports }] };
    const agent = { container: 'aws-eks-nodeagent', image: 'x/aws-network-policy-agent:v1.1.0' };
    const pods = [{ ...agent, args: ['--enable-network-policy=true'] }];
    assert.equal(accepted({ pods }, { ...rangePolicy(), spec }), 'False LimitExceeded');
    const { conditions } = networkPolicyStatusFields({ ...rangePolicy(), spec }, known({ pods }), undefined, NOW);
    assert.match(findCondition(conditions, 'Accepted')?.message ?? '', /at most 24 of the 25 port entries/);
  });

  it('is a PartialFailure where nodes have no agent, after a grace period', () => {
    const nodes = [node('a', '2026-11-24T07:00:00Z'), node('b', '2026-11-24T07:57:00Z')];
    const pods = [{ ...NEW, node: 'a' }];
    assert.equal(known({ pods, nodes }).unguardedNodes, 0);
    assert.equal(known({ pods, nodes }).nextChange, Date.parse('2026-11-24T08:02:00Z'));
    const later = known({ pods, nodes }, NOW + 600_000);
    assert.equal(later.unguardedNodes, 1);
    const { conditions } = networkPolicyStatusFields(rangePolicy(), later, undefined, NOW);
    assert.equal(findCondition(conditions, 'Accepted')?.status, 'True');
    assert.equal(findCondition(conditions, 'PartialFailure')?.reason, 'ProviderMissingOnNodes');
  });

  it('keeps transition times, so that it is not written again', () => {
    const first = networkPolicyStatusFields(rangePolicy(), known({ pods: [{}] }), undefined, NOW);
    assert.ok(isApplied(first, networkPolicyStatusFields(rangePolicy(), known({ pods: [{}] }), first, NOW + 60_000)));
    const upgraded = networkPolicyStatusFields(rangePolicy(), known({ pods: [NEW] }), first, NOW + 60_000);
    assert.ok(!isApplied(first, upgraded));
  });
});

describe('the status is a function of policy, providers and catalogue', () => {
  const pod = fc.record({
    name: fc.string({ minLength: 1, maxLength: 8 }),
    image: fc.constantFrom(
      'cilium/cilium:v1.15.4',
      'cilium/cilium:v1.16.0',
      'cilium/cilium:latest',
      'calico/node:v3.28.0',
    ),
    container: fc.constantFrom('cilium-agent', 'calico-node', 'kube-flannel', 'other'),
    node: fc.constantFrom('a', 'b', 'c'),
  });
  const sample = fc.record({
    pods: fc.array(pod, { maxLength: 6 }),
    declared: fc.uniqueArray(
      fc
        .tuple(fc.constantFrom('cilium', 'calico', 'mine'), fc.constantFrom('Detected', 'Present', 'Absent'))
        .map(([name, presence]) => declare(name, { presence })),
      { selector: ({ metadata }) => metadata.name, maxLength: 3 },
    ),
  });

  it('whatever the order of events and the statuses between', () => {
    fc.assert(
      fc.property(fc.array(sample, { minLength: 1, maxLength: 4 }), fc.integer(), (history, seed) => {
        const last = history.at(-1) ?? assert.fail('empty');
        const policy = rangePolicy();
        const direct = networkPolicyStatusFields(policy, known(last), undefined, NOW);
        const through = history.reduce<StatusFields | undefined>(
          (before, one) => networkPolicyStatusFields(policy, known(shuffled(one, seed)), before, NOW),
          undefined,
        );
        assert.deepEqual(through, direct);
      }),
    );
  });
});

function shuffled({ pods = [], declared = [] }: Sample, seed: number): Sample {
  const turn = <T>(list: readonly T[]): readonly T[] => {
    const at = list.length === 0 ? 0 : Math.abs(seed) % list.length;
    return [...list.slice(at), ...list.slice(0, at)].toReversed();
  };
  return { pods: turn(pods), declared: turn(declared) };
}
