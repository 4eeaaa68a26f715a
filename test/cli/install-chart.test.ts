// deploy/charts and deploy/manifests install the same objects as `portcullis install`, for any values.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { dump, loadAll } from 'js-yaml';
import { HELM_PARTS, installObjects } from '../../src/installation/install-objects.ts';
import { installValues } from '../../src/installation/read-values.ts';
import { ALL_KINDS, type KubernetesObject } from '../../src/resources/index.ts';
import { clusterAvailable, skipWithoutCluster } from '../cluster/binaries.ts';
import { type Cluster, startCluster } from '../cluster/cluster.ts';
import { ROOT, run } from './command.ts';

const CHART = join(ROOT, 'deploy/charts/portcullis');
const CRDS_CHART = join(ROOT, 'deploy/charts/portcullis-crds');
const NAMESPACE = 'policies';

const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string };

/** Values that differ from all defaults, with texts that YAML or Helm could take for another type. */
const VALUES: Readonly<Record<string, object>> = {
  none: {},
  everything: {
    image: 'registry.example.com:5000/policies/portcullis:1.0@sha256:0123',
    imagePullPolicy: 'Always',
    imagePullSecrets: [{ name: 'one' }, { name: 'two' }],
    exemptNamespaces: ['kube-system', 'legacy'],
    listenAddress: '::',
    controller: {
      replicas: 3,
      logLevel: 'debug',
      logFormat: 'text',
      rolloutStrategy: 'AllReplicas',
      progressDeadline: '1m30s',
      revisionHistoryLimit: 1000,
      degradedPolicies: 'ignore',
      unservedPolicies: 'reject',
      resources: { limits: { cpu: '500m', memory: null } },
      nodeSelector: { 'kubernetes.io/os': 'linux', yes: 'no' },
      tolerations: [{ key: 'node-role.kubernetes.io/control-plane', operator: 'Exists', effect: 'NoSchedule' }],
      affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } },
      priorityClassName: 'system-cluster-critical',
      extraArgs: ['--log-level=trace', '- odd: {{ .Values.image }} "quoted" %d', '0123'],
      extraEnv: [
        { name: 'HTTPS_PROXY', value: 'http://proxy:3128' },
        { name: 'EMPTY', value: '' },
      ],
    },
    certificates: {
      mode: 'external',
      caLifetime: '100d',
      certManager: { enabled: true, issuer: { kind: 'ClusterIssuer', name: 'corporate', group: 'example.com' } },
    },
    policyServer: {
      replicas: 0,
      limits: { memory: '2Gi' },
      imagePullSecret: 'one',
      env: [{ name: 'KUBEWARDEN_LOG_LEVEL', value: 'debug' }],
    },
    governance: {
      mode: 'hub',
      clusterName: 'prod',
      namespaces: ['policies', 'more'],
      roles: ['view', 'system:node-reader', '0123'],
    },
    recommendedPolicies: { enabled: true, mode: 'protect' },
    monitoring: {
      podMonitor: { enabled: true },
      prometheusRule: { enabled: true },
      labels: { release: 'prometheus', number: '1' },
    },
  },
  little: {
    exemptNamespaces: [],
    governance: { enabled: false, roles: ['view'] },
    policyServer: { enabled: false },
    networkPolicy: { enabled: false },
    userRoles: { enabled: false },
    uninstallHook: { enabled: false },
  },
};

const keyOf = ({ kind, metadata }: KubernetesObject): string => `${kind}/${metadata.namespace ?? ''}/${metadata.name}`;
const byKey = (objects: readonly KubernetesObject[]): Record<string, unknown> =>
  Object.fromEntries(objects.map((object) => [keyOf(object), structuredClone(object)]));
const objectsOf = (text: string): readonly KubernetesObject[] =>
  (loadAll(text) as (KubernetesObject | null)[]).filter((object) => object !== null);

/** The rights on Secrets of all roles. */
function verbsOnSecrets(objects: readonly KubernetesObject[]): readonly string[] {
  const rules = objects.flatMap((object) => (object['rules'] ?? []) as { resources: string[]; verbs: string[] }[]);
  const verbs = rules.filter(({ resources }) => resources.includes('secrets')).flatMap((rule) => rule.verbs);
  return [...new Set(verbs)].toSorted();
}

describe('the plain manifests', () => {
  it('are the objects of an installation without values', async () => {
    const text = await readFile(join(ROOT, 'deploy/manifests/portcullis.yaml'), 'utf8');
    const values = installValues({}, version, 'no values');
    assert.deepEqual(objectsOf(text), JSON.parse(JSON.stringify(installObjects({ namespace: 'portcullis', values }))));
  });
});

describe('the charts', { skip: skipWithoutCluster() }, () => {
  let folder = '';
  let helm = '';
  before(async () => {
    const found = clusterAvailable();
    helm = found.available ? found.binaries.helm : '';
    folder = await mkdtemp(join(tmpdir(), 'portcullis-chart-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const env = (): Record<string, string> =>
    Object.fromEntries(['CACHE', 'CONFIG', 'DATA'].map((what) => [`HELM_${what}_HOME`, join(folder, what)]));

  for (const [name, given] of Object.entries(VALUES)) {
    it(`make the same objects as the command: ${name}`, async () => {
      const file = join(folder, `${name}.yaml`);
      await writeFile(file, dump(given));
      const rendered = await run(
        helm,
        ['template', 'any-release', CHART, '--namespace', NAMESPACE, '--values', file, '--kube-version', '1.34.0'],
        { env: env() },
      );
      assert.equal(rendered.code, 0, rendered.stderr);
      const values = installValues(given, version, name);
      const context = { namespace: NAMESPACE, values };
      const installed = installObjects(context).filter(
        ({ kind }) => kind !== 'Namespace' && kind !== 'CustomResourceDefinition',
      );
      const hooks = values.uninstallHook.enabled ? HELM_PARTS.flatMap(({ objects }) => objects(context)) : [];
      const wanted = [...installed, ...hooks];
      assert.deepEqual(byKey(objectsOf(rendered.stdout)), JSON.parse(JSON.stringify(byKey(wanted))));
    });
  }

  it('let the controller only read Secrets when another program manages the certificates', async () => {
    const verbs = async (...more: string[]): Promise<readonly string[]> => {
      const args = ['template', 'any', CHART, '--namespace', NAMESPACE, '--kube-version', '1.34.0', ...more];
      const rendered = await run(helm, args, { env: env() });
      assert.equal(rendered.code, 0, rendered.stderr);
      return verbsOnSecrets(objectsOf(rendered.stdout));
    };
    assert.deepEqual(await verbs(), ['create', 'delete', 'get', 'list', 'update', 'watch']);
    assert.deepEqual(await verbs('--set', 'certificates.mode=external'), ['get', 'list', 'watch']);
  });

  it('upgrade the kinds, and keep them when they are uninstalled', async () => {
    const rendered = await run(helm, ['template', 'any', CRDS_CHART, '--kube-version', '1.34.0'], { env: env() });
    assert.equal(rendered.code, 0, rendered.stderr);
    const objects = objectsOf(rendered.stdout);
    assert.ok(objects.every(({ metadata }) => metadata.annotations?.['helm.sh/resource-policy'] === 'keep'));
    const values = installValues({}, version, 'no values');
    const wanted = installObjects({ namespace: NAMESPACE, values }).filter(
      ({ kind }) => kind === 'CustomResourceDefinition',
    );
    const plain = objects.map(({ metadata: { annotations: _annotations, ...metadata }, ...rest }) => ({
      ...rest,
      metadata,
    }));
    assert.deepEqual(byKey(plain as KubernetesObject[]), JSON.parse(JSON.stringify(byKey(wanted))));
  });

  it('pass the checks of Helm', async () => {
    const { code, stdout } = await run(helm, ['lint', '--strict', '--quiet', CHART, CRDS_CHART], { env: env() });
    assert.equal(code, 0, stdout);
  });

  it('refuse values that do not exist, or have another type', async () => {
    for (const wrong of [
      'controler.replicas=3',
      'controller.replicas=many',
      'recommendedPolicies.mode=audit',
      'certificates.certManager.enabled=true',
    ]) {
      const { code, stderr } = await run(helm, ['template', 'any', CHART, '--kube-version', '1.34.0', '--set', wrong], {
        env: env(),
      });
      assert.equal(code, 1, wrong);
      assert.match(stderr, /don't meet the specifications of the schema/);
    }
  });
});

describe('on a kube-apiserver', { skip: skipWithoutCluster() }, () => {
  const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  const SERVER = '/apis/policies.kubewarden.io/v1/policyservers/default';
  let cluster: Cluster;
  before(async () => {
    cluster = await startCluster();
  });
  after(() => cluster.stop());

  it('the charts are installed, upgraded and uninstalled, and the kinds stay', async () => {
    const helm = async (...args: string[]): Promise<void> => {
      const { code, stderr } = await cluster.helm([...args, '-n', NAMESPACE]);
      assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
    };
    const image = async (): Promise<string> =>
      (await cluster.expect<{ spec: { image: string } }>('GET', SERVER)).spec.image;
    await helm('install', 'portcullis-crds', CRDS_CHART, '--create-namespace');
    await helm('install', 'portcullis', CHART);
    assert.equal(await image(), `portcullis:${version}`);
    await helm('upgrade', 'portcullis-crds', CRDS_CHART);
    await helm('upgrade', 'portcullis', CHART, '--set', 'image=example.com/portcullis:2');
    assert.equal(await image(), 'example.com/portcullis:2');
    // No pods run here, so the Job of the hook would never end.
    await helm('uninstall', 'portcullis', '--no-hooks');
    await helm('uninstall', 'portcullis-crds');
    const { items } = await cluster.expect<{ items: unknown[] }>('GET', CRDS);
    assert.equal(items.length, ALL_KINDS.length);
  });

  it('the plain manifests are applied in two passes: the second one has the kinds of the first', async () => {
    await cluster.kubectl(['delete', 'crd', '--all']);
    const manifests = ['apply', '--server-side', '-f', join(ROOT, 'deploy/manifests/portcullis.yaml')];
    await cluster.kubectl(manifests);
    const { code, stderr } = await cluster.kubectl(manifests);
    assert.equal(code, 0, stderr);
    assert.doesNotMatch(stderr, /Warning/);
    assert.equal((await cluster.request('GET', SERVER)).status, 200);
  });
});
