import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { builtinCatalogue } from '../engine/network-policy/index.ts';
import type { KubernetesObject } from '../resources/index.ts';
import { imageName, readAgentPod, withoutOtherFields } from './agent-pod.ts';
import { detectProviders, type DetectedProvider } from './detect-providers.ts';
import { agentPod, type SamplePod } from './testing/sample-cluster.ts';

interface SampleCluster {
  readonly pods?: readonly SamplePod[];
  readonly nodes?: readonly KubernetesObject[];
  readonly config?: Readonly<Record<string, string>>;
  readonly versions?: readonly KubernetesObject[];
}

function detect({ pods = [], nodes = [], config, versions = [] }: SampleCluster): readonly DetectedProvider[] {
  const configMap = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'kube-system', name: 'cilium-config' },
  };
  return detectProviders(
    {
      pods: pods.flatMap((pod) => readAgentPod(withoutOtherFields(agentPod(pod))) ?? []),
      nodes,
      versions,
      configMaps: config === undefined ? [] : [{ ...configMap, data: config }],
    },
    builtinCatalogue(),
  );
}

function names(...pods: readonly SamplePod[]): readonly string[] {
  return detect({ pods }).map(({ name }) => name);
}

function node(name: string, kubeletVersion: string, args?: readonly string[]): KubernetesObject {
  const annotations = args === undefined ? {} : { annotations: { 'k3s.io/node-args': JSON.stringify(args) } };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, ...annotations },
    status: { nodeInfo: { kubeletVersion } },
  };
}

describe('a provider is detected', () => {
  const cases: readonly (readonly [string, SamplePod, readonly string[]])[] = [
    ['Cilium', {}, ['cilium']],
    [
      'an image of a private registry',
      { image: 'registry.example:5000/mirror/quay.io/cilium/cilium:v1.15.4' },
      ['cilium'],
    ],
    ['a renamed image by its DaemonSet', { image: 'registry.example/network:1.15.4', daemonSet: 'cilium' }, ['cilium']],
    ['GKE Dataplane V2', { image: 'gke.gcr.io/cilium/cilium:v1.15.4', daemonSet: 'anetd' }, ['gke-dataplane-v2']],
    [
      'Antrea for Windows',
      { container: 'antrea-agent', daemonSet: 'antrea-agent-windows', os: 'windows' },
      ['antrea-windows'],
    ],
    ['Antrea', { container: 'antrea-agent', daemonSet: 'antrea-agent' }, ['antrea']],
    ['OpenShift SDN', { container: 'sdn', image: 'q/r@sha256:00', daemonSet: 'sdn' }, ['openshift-sdn']],
    ['Terway', { container: 'terway', daemonSet: 'terway-eniip', others: ['policy'] }, ['terway']],
    ['Cilium of AKS', { image: 'mcr.microsoft.com/containernetworking/cilium/cilium:v1.16.5' }, ['aks-cilium']],
    ['Calico', { container: 'calico-node', image: 'docker.io/calico/node:v3.28.0' }, ['calico']],
    ['Canal', { container: 'calico-node', image: 'calico/node:v3.28.0', others: ['kube-flannel'] }, ['canal']],
    ['Calico for Windows', { container: 'node', daemonSet: 'calico-node-windows', os: 'windows' }, ['calico-windows']],
    ['Azure NPM', { container: 'azure-npm' }, ['azure-npm']],
    ['Azure NPM for Windows', { container: 'azure-npm', os: 'windows' }, ['azure-npm-windows']],
    ['Flannel', { container: 'kube-flannel', image: 'flannel/flannel:v0.25.5' }, ['flannel']],
    [
      'kube-network-policies in the pod of Flannel',
      { container: 'kube-network-policies', image: 'x/kube-network-policies:v0.7.0', others: ['kube-flannel'] },
      ['kube-network-policies'],
    ],
    [
      'OVN-Kubernetes by digest',
      { container: 'ovnkube-controller', image: 'q/r@sha256:00', daemonSet: 'ovnkube-node' },
      ['ovn-kubernetes'],
    ],
    ['not: another image and no DaemonSet', { image: 'example.com/other:v1' }, []],
    ['not: a pod that is not in the network of its host', { hostNetwork: false }, []],
  ];
  for (const [name, pod, expected] of cases) {
    it(`: ${name}`, () => assert.deepEqual(names(pod), expected));
  }

  it('beside others', () => {
    assert.deepEqual(names({}, { name: 'c', container: 'calico-node', image: 'calico/node:v3.28.0' }), [
      'calico',
      'cilium',
    ]);
  });

  it('that is part of k3s, with the switch that disables it', () => {
    const nodes = [node('a', 'v1.30.0+k3s1', ['server', '--disable-network-policy']), node('b', 'v1.30.0+k3s1')];
    assert.deepEqual(detect({ nodes }), [
      {
        name: 'k3s-netpol',
        version: undefined,
        versions: [],
        settings: { 'disable-network-policy': 'true' },
        nodes: ['a', 'b'],
      },
    ]);
  });
});

describe('the version', () => {
  const version = (...pods: readonly SamplePod[]) => detect({ pods })[0]?.version;

  it('is the lowest during a rollout', () => {
    const pods = ['v1.16.0', 'v1.15.10', 'v1.15.9'].map((tag) => ({ name: tag, image: `cilium/cilium:${tag}` }));
    assert.equal(version(...pods), 'v1.15.9');
    assert.deepEqual(detect({ pods })[0]?.versions, ['v1.15.9', 'v1.15.10', 'v1.16.0']);
  });

  it('before a release is lower than the release', () => {
    const pods = ['v1.16.0', 'v1.16.0-rc.1'].map((tag) => ({ name: tag, image: `cilium/cilium:${tag}` }));
    assert.equal(version(...pods), 'v1.16.0-rc.1');
  });

  it('of an image by digest is that of the labels', () => {
    const image = `cilium/cilium@sha256:${'0'.repeat(64)}`;
    assert.equal(version({ image, labels: { 'app.kubernetes.io/version': '1.15.4' } }), '1.15.4');
    assert.equal(version({ image, labels: { 'helm.sh/chart': 'cilium-1.15.4' } }), '1.15.4');
    assert.equal(version({ image }), undefined);
  });

  it('is unknown while that of one agent is', () => {
    assert.equal(version({}, { name: 'b', image: 'cilium/cilium:latest' }), undefined);
    assert.equal(version({}, { name: 'b', image: 'cilium/cilium@sha256:00' }), undefined);
  });
});

describe('the version of a provider of a distribution', () => {
  it('is the least that the kubelets of its nodes come with', () => {
    const sdn = { container: 'sdn', image: `q/r@sha256:${'0'.repeat(64)}`, daemonSet: 'sdn', node: 'a' };
    const versionWith = (...nodes: readonly KubernetesObject[]): string | undefined =>
      detect({ pods: [sdn], nodes })[0]?.version;
    assert.equal(versionWith(node('a', 'v1.27.8+4fab27b')), '4.10.0');
    assert.equal(versionWith(node('a', 'v1.22.1+d8c4430')), '4.1.0');
    assert.equal(versionWith(node('a', 'v1.40.0')), undefined);
    assert.equal(versionWith(node('b', 'v1.27.8+4fab27b')), undefined);
  });

  it('is at least what runs with this Kubernetes, where an image has no version', () => {
    const digest = { image: `cilium/cilium@sha256:${'0'.repeat(64)}`, node: 'a' };
    const versionWith = (kubelet: string): string | undefined =>
      detect({ pods: [digest], nodes: [node('a', kubelet)] })[0]?.version;
    assert.equal(versionWith('v1.34.1'), '>=1.9.0');
    assert.equal(versionWith('v1.21.0'), undefined);
    const stable = { name: 'b', image: 'cilium/cilium:stable', node: 'a' };
    assert.equal(detect({ pods: [stable], nodes: [node('a', 'v1.34.1')] })[0]?.version, '>=1.9.0');
  });

  it('of OpenShift needs its namespace, too', () => {
    const ovn = { container: 'ovnkube-controller', image: 'q/r@sha256:00', daemonSet: 'ovnkube-node', node: 'a' };
    const versionIn = (namespace: string, kubelet: string): string | undefined =>
      detect({ pods: [{ ...ovn, namespace }], nodes: [node('a', kubelet)] })[0]?.version;
    assert.equal(versionIn('openshift-ovn-kubernetes', 'v1.33.5+abc'), '>=1.0.0');
    assert.equal(versionIn('openshift-ovn-kubernetes', 'v1.27.8+4fab27b'), undefined);
    assert.equal(versionIn('ovn-kubernetes', 'v1.33.5'), undefined);
  });

  it('of k3s is a single release of its kube-router where that has a fault', () => {
    const versionOf = (kubelet: string): string | undefined => detect({ nodes: [node('a', kubelet)] })[0]?.version;
    assert.equal(versionOf('v1.33.6+k3s1'), '2.6.1');
    assert.equal(versionOf('v1.33.7+k3s1'), '2.1.2');
  });

  it('of GKE is in the tag of its image', () => {
    const [gke] = detect({ pods: [{ image: 'gke.gcr.io/cilium/cilium:v1.15.10-gke.9', daemonSet: 'anetd' }] });
    assert.deepEqual([gke?.name, gke?.version], ['gke-dataplane-v2', 'v1.15.10-gke.9']);
  });
});

describe('the version of an image by digest', () => {
  const digest = `@sha256:${'0'.repeat(64)}`;
  const calico = { container: 'calico-node', image: `registry.example/node${digest}` };
  const antrea = { container: 'antrea-agent', image: `registry.example/antrea-agent-ubuntu${digest}` };
  const clusterInformation = (calicoVersion: unknown): KubernetesObject => ({
    apiVersion: 'crd.projectcalico.org/v1',
    kind: 'ClusterInformation',
    metadata: { name: 'default' },
    spec: { calicoVersion },
  });
  const controllerInfo: KubernetesObject = {
    apiVersion: 'crd.antrea.io/v1beta1',
    kind: 'AntreaControllerInfo',
    metadata: { name: 'antrea-controller' },
    version: 'v2.1.0',
  };
  const other = { ...calico, name: 'b', image: 'registry.example/node@sha256:11' };
  const cases: readonly (readonly [string, SampleCluster, string | undefined])[] = [
    ['is unknown', { pods: [calico] }, undefined],
    ['is that of ClusterInformation', { pods: [calico], versions: [clusterInformation('v3.28.1')] }, 'v3.28.1'],
    ['is that of AntreaControllerInfo', { pods: [antrea], versions: [controllerInfo] }, 'v2.1.0'],
    ['is not that of another provider', { pods: [calico], versions: [controllerInfo] }, undefined],
    ['is unknown during a rollout', { pods: [calico, other], versions: [clusterInformation('v3.28.1')] }, undefined],
    ['is unknown when the object has none', { pods: [calico], versions: [clusterInformation(5)] }, undefined],
    ['is unknown when the object has a word', { pods: [calico], versions: [clusterInformation('master')] }, undefined],
    [
      'is that of the tag where there is one',
      { pods: [{ ...calico, image: 'calico/node:v3.27.0' }], versions: [clusterInformation('v3.28.1')] },
      'v3.27.0',
    ],
  ];
  for (const [name, sample, expected] of cases) {
    it(name, () => assert.equal(detect(sample)[0]?.version, expected));
  }
});

describe('the version of a renamed image', () => {
  const renamed = { daemonSet: 'cilium', image: 'registry.example/team/network:1.15.4' };
  const cases: readonly (readonly [string, SamplePod, string | undefined])[] = [
    ['is unknown', renamed, undefined],
    ['is that of the labels', { ...renamed, labels: { 'app.kubernetes.io/version': '1.16.0' } }, '1.16.0'],
    ['is that of the chart', { ...renamed, labels: { 'helm.sh/chart': 'cilium-1.16.0' } }, '1.16.0'],
    ['is its tag, with the word', { ...renamed, image: 'registry.example/mirrored-cilium-cilium:v1.15.4' }, 'v1.15.4'],
    ['is its tag, as RKE2 names it', { container: 'calico-node', image: 'x/hardened-calico:v3.28.0' }, 'v3.28.0'],
  ];
  for (const [name, pod, expected] of cases) {
    it(name, () => assert.equal(detect({ pods: [pod] })[0]?.version, expected));
  }
});

describe('the version of a provider in the kubelet', () => {
  const cases: readonly (readonly [readonly string[], string | undefined])[] = [
    [['v1.31.4+k3s1'], '2.1.2'],
    [['v1.37.0+k3s1'], '2.1.2'],
    [['v1.30.0+k3s1'], undefined],
    [['v1.38.0+k3s1'], undefined],
    [['v1.31.4+k3s1', 'v1.30.0+k3s1'], undefined],
    [['+k3s'], undefined],
  ];
  for (const [versions, expected] of cases) {
    it(`${versions.join(', ')}: ${expected ?? 'unknown'}`, () => {
      const nodes = versions.map((version, index) => node(`node-${index}`, version));
      assert.equal(detect({ nodes })[0]?.version, expected);
    });
  }
});

describe('two providers on one node', () => {
  it('are two, each with its version', () => {
    const pods = [{ node: 'a' }, { name: 'c', node: 'a', container: 'calico-node', image: 'calico/node:v3.28.0' }];
    const found = detect({ pods }).map(({ name, version, nodes }) => [name, version, nodes]);
    assert.deepEqual(found, [
      ['calico', 'v3.28.0', ['a']],
      ['cilium', 'v1.15.4', ['a']],
    ]);
  });
});

describe('settings', () => {
  it('of a ConfigMap count, with the defaults of those that it lacks', () => {
    const settings = detect({ pods: [{}], config: { 'enable-policy': 'never', other: 'x' } })[0]?.settings ?? {};
    assert.equal(settings['enable-policy'], 'never');
    assert.equal(settings['enable-sctp'], 'false');
    assert.ok(!Object.hasOwn(settings, 'other'));
  });

  it('are unknown without the ConfigMap', () => {
    assert.deepEqual(detect({ pods: [{}] })[0]?.settings, {});
  });

  const agent = { container: 'aws-eks-nodeagent', image: 'amazon/aws-network-policy-agent:v1.1.0' };
  for (const [args, expected] of [
    [[], 'false'],
    [['--enable-network-policy=true'], 'true'],
    [['--enable-network-policy', 'true'], 'true'],
    [['--enable-network-policy'], 'true'],
    [['--enable-network-policy=true', '--enable-network-policy=false'], 'false'],
  ] as const) {
    it(`of arguments count: ${args.join(' ') || 'none'}`, () => {
      assert.deepEqual(detect({ pods: [{ ...agent, args }] })[0]?.settings, { 'enable-network-policy': expected });
    });
  }

  it('of arguments of another container count', () => {
    const ovn = { container: 'cni-server', image: 'kubeovn/kube-ovn:v1.13.0', daemonSet: 'kube-ovn-cni' };
    const controller = (...args: string[]): SamplePod => ({
      name: `controller-${args.length}`,
      container: 'kube-ovn-controller',
      args,
    });
    const settings = (...pods: readonly SamplePod[]) => detect({ pods: [ovn, ...pods] })[0]?.settings;
    assert.deepEqual(settings(), {});
    assert.deepEqual(settings(controller()), { 'enable-np': 'true' });
    assert.deepEqual(settings(controller('--enable-np=false')), { 'enable-np': 'false' });
    assert.deepEqual(settings(controller(), controller('--enable-np=false')), {});
  });

  it('that differ between agents are unknown', () => {
    const pods = ['true', 'false'].map((value) => ({
      ...agent,
      name: value,
      args: [`--enable-network-policy=${value}`],
    }));
    assert.deepEqual(detect({ pods })[0]?.settings, {});
  });
});

describe('hostile pods', () => {
  for (const spec of [
    null,
    5,
    { hostNetwork: true, containers: 5 },
    { hostNetwork: true, containers: [null, { name: 5 }] },
  ]) {
    it(`are no agents: ${JSON.stringify(spec)}`, () => {
      const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x' }, spec };
      assert.deepEqual(
        detectProviders({ pods: [readAgentPod(pod) ?? []].flat(), nodes: [], configMaps: [] }, builtinCatalogue()),
        [],
      );
    });
  }

  it('have names of images that are split safely', () => {
    assert.deepEqual(imageName('localhost:5000/a/b:v1@sha256:00'), {
      registry: 'localhost:5000',
      name: 'b',
      tag: 'v1',
    });
    assert.deepEqual(imageName(''), { registry: '', name: '', tag: undefined });
  });
});
