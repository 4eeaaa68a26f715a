// docs/install.md and docs/migration.md are complete, and their commands work on a real API server whose pods run as processes.
// Of Kubewarden, only objects exist in the cluster.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { FINDING_CODES } from '../../src/installation/findings/finding.ts';
import { ALERTS } from '../../src/installation/objects/monitoring-objects.ts';
import { installObjects } from '../../src/installation/install-objects.ts';
import { defaultValues } from '../../src/installation/read-values.ts';
import { clusterAvailable, skipWithoutCluster } from '../cluster/binaries.ts';
import { type Cluster, startCluster } from '../cluster/cluster.ts';
import { startNode, type TestNode } from '../cluster/node/node.ts';
import { COMMAND, ENVIRONMENT, ROOT } from './command.ts';

const installPage = await readFile(join(ROOT, 'docs/install.md'), 'utf8');
const migrationPage = await readFile(join(ROOT, 'docs/migration.md'), 'utf8');

/** The command blocks of a page with their headings. */
function blocksOf(page: string): readonly { readonly heading: string; readonly commands: string }[] {
  return [...page.matchAll(/^```sh\n(.*?)^```\n/gms)].map((match) => ({
    heading: [...page.slice(0, match.index).matchAll(/^##+ (.*)$/gm)].at(-1)?.[1] ?? '',
    commands: match[1] ?? '',
  }));
}

describe('docs/install.md', () => {
  it('explains each finding and each alert', () => {
    for (const name of [...Object.keys(FINDING_CODES), ...ALERTS.map((alert) => alert.name)]) {
      assert.ok(installPage.includes(`\`${name}\``), name);
    }
  });
});

describe('the pages about installing', { skip: skipWithoutCluster() }, () => {
  let cluster: Cluster;
  let node: TestNode;
  let folder = '';
  before(async () => {
    cluster = await startCluster({ controllers: true });
    node = await startNode(cluster);
    folder = await mkdtemp(join(tmpdir(), 'portcullis-pages-'));
    await writeFile(join(folder, 'npx'), `#!/bin/sh\nshift\nexec "${process.execPath}" "${COMMAND}" "$@"\n`, {
      mode: 0o755,
    });
  });
  after(async () => {
    await (node as TestNode | undefined)?.stop();
    await (cluster as Cluster | undefined)?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  /** Runs a block in a folder of its own. */
  const shell = async (commands: string): Promise<string> => {
    const found = clusterAvailable();
    const kubectl = found.available ? dirname(found.binaries.kubectl) : '';
    const child = spawn('sh', ['-e', '-c', `exec 2>&1\n${commands}`], {
      cwd: folder,
      env: {
        ...ENVIRONMENT,
        PATH: [folder, kubectl, process.env['PATH'] ?? ''].join(delimiter),
        KUBECONFIG: cluster.kubeconfig,
        KUBECACHEDIR: join(folder, 'kubectl-cache'),
        TIMEOUT: '2m',
      },
    });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    const { promise, resolve, reject } = Promise.withResolvers<number | null>();
    child.on('error', reject);
    child.on('close', resolve);
    assert.equal(await promise, 0, `${commands}\n${output}\n${node.logs()}`);
    return output;
  };

  it('have commands that work: installing', async () => {
    const blocks = blocksOf(installPage);
    assert.ok(blocks.length >= 3);
    for (const { commands } of blocks) {
      await shell(commands);
    }
    await shell('npx portcullis uninstall --keep-namespace --delete-policies --delete-crds');
  });

  it('have commands that work: from Kubewarden, in place', async () => {
    await likeKubewarden(cluster);
    const servers = '/apis/policies.kubewarden.io/v1/policyservers';
    for (const { commands } of blocksOf(migrationPage)) {
      await shell(commands);
    }
    const denied = await cluster.request<{ message: string }>('POST', '/api/v1/namespaces/default/pods?dryRun=All', {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'one' },
      spec: { hostPID: true, containers: [{ name: 'c', image: 'i:1' }] },
    });
    assert.match(denied.body.message, /privileged.*hostPID/);
    const server = await cluster.expect<{ metadata: { finalizers?: string[] }; spec: { image: string } }>(
      'GET',
      `${servers}/default`,
    );
    assert.equal(server.metadata.finalizers, undefined);
    assert.equal(server.spec.image, 'example.com/kubewarden/policy-server:v1.36.0');
    const left = await cluster.expect<{ items: { metadata: { name: string } }[] }>(
      'GET',
      '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
    );
    assert.deepEqual(
      left.items.map(({ metadata }) => metadata.name),
      ['portcullis-default', 'portcullis-own-kinds', 'somebody-elses'],
    );

    const output = await shell('npx portcullis doctor -o json || true');
    assert.doesNotMatch(output, /"code": "(Kubewarden\w+|PolicyServerForeign|KindOwnedElsewhere)"/);
  });
});

/** The objects of Kubewarden's charts and controller that the page mentions. */
async function likeKubewarden(cluster: Cluster): Promise<void> {
  await cluster.createNamespace('kubewarden');
  const helm = { 'meta.helm.sh/release-name': 'kubewarden-crds', 'meta.helm.sh/release-namespace': 'kubewarden' };
  const objects = installObjects({ namespace: 'portcullis', values: defaultValues('0.1.0') });
  for (const object of objects) {
    if (object.kind === 'CustomResourceDefinition' && object.metadata.name?.endsWith('.kubewarden.io') === true) {
      await cluster.expect('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
        ...object,
        metadata: { name: object.metadata.name, annotations: helm },
      });
    }
  }
  await cluster.kubectl(['wait', 'crd', '--all', '--for=condition=Established']);
  const finalizers = ['kubewarden.io/finalizer'];
  await cluster.expect('POST', '/apis/policies.kubewarden.io/v1/policyservers', {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'PolicyServer',
    metadata: { name: 'default', finalizers },
    spec: { image: 'example.com/kubewarden/policy-server:v1.36.0', replicas: 1 },
  });
  await cluster.expect('POST', '/apis/policies.kubewarden.io/v1/clusteradmissionpolicies', {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'ClusterAdmissionPolicy',
    metadata: { name: 'privileged', finalizers },
    spec: {
      module: 'builtin:pod-security',
      settings: { enforce: 'baseline' },
      mutating: false,
      rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }],
    },
  });
  const webhook = (name: string): object => ({
    name,
    admissionReviewVersions: ['v1'],
    sideEffects: 'None',
    failurePolicy: 'Ignore',
    clientConfig: { service: { name: 'policy-server-default', namespace: 'kubewarden' } },
    rules: [{ apiGroups: ['example.com'], apiVersions: ['v1'], resources: ['things'], operations: ['CREATE'] }],
  });
  for (const [name, one] of [
    ['kubewarden-controller-validating-webhook-configuration', 'vclusteradmissionpolicy.kb.io'],
    ['clusterwide-privileged', 'clusterwide-privileged.kubewarden.admission'],
    ['somebody-elses', 'one.example.com'],
  ] as const) {
    await cluster.expect('POST', '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations', {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name },
      webhooks: [webhook(one)],
    });
  }
  await cluster.expect('POST', '/apis/apps/v1/namespaces/kubewarden/deployments', {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'kubewarden-controller', labels: { 'app.kubernetes.io/part-of': 'kubewarden' } },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: 'k' } },
      template: { metadata: { labels: { app: 'k' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
    },
  });
}
