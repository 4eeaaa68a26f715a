// A real kube-apiserver calls a policy server: kubectl shows that pods are rejected, mutated and admitted.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ensureLocalCertificates } from '../../src/control/certificates/index.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { type Cluster, type KubectlResult, type KubernetesObject, startCluster } from '../cluster/cluster.ts';
import { eventually } from '../cluster/eventually.ts';
import { webhookConfiguration, webhookConfigurationPath } from '../cluster/webhook-configuration.ts';
import { serve, type Served } from './served.ts';

const example = (name: string): string =>
  `file://${fileURLToPath(new URL(`../../examples/${name}/policy.wasm`, import.meta.url))}`;

const requires = (label: string): object => ({ module: example('required-labels'), settings: { labels: [label] } });

const policies = {
  labels: requires('team'),
  seccomp: { module: example('default-seccomp'), settings: { profile: 'RuntimeDefault' }, allowedToMutate: true },
  group: {
    expression: 'unprivileged() && isolated()',
    message: 'only unprivileged pods that share nothing',
    policies: {
      unprivileged: { module: example('pod-privileged') },
      isolated: {
        module: example('host-namespaces'),
        settings: { allowHostNetwork: false, allowHostPID: false, allowHostIPC: false },
      },
    },
  },
  swapped: requires('first'),
};

function pod(name: string, labels: Readonly<Record<string, string>> = {}, spec: object = {}): KubernetesObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels },
    spec: { containers: [{ name: 'main', image: 'example.com/pause:1' }], ...spec },
  };
}

describe('a kube-apiserver with policies', { skip: skipWithoutCluster() }, () => {
  let folder: string;
  let cluster: Cluster;
  let served: Served;

  async function write(content: object | string): Promise<void> {
    const file = join(folder, 'policies.yml');
    await writeFile(`${file}.new`, typeof content === 'string' ? content : JSON.stringify(content));
    await rename(`${file}.new`, file);
  }

  /** Configures a webhook that calls the policy for pods in the namespace of its name. Waits until it is called. */
  async function enforce(policy: string, kind: 'validating' | 'mutating'): Promise<void> {
    await cluster.createNamespace(policy, { policy });
    const configuration = webhookConfiguration({
      name: policy,
      kind,
      url: `${served.admission}/validate/${policy}`,
      caBundle: await readFile(join(folder, 'pki', 'ca.crt'), 'utf8'),
      rules: [{ operations: ['CREATE', 'UPDATE'], resources: ['pods'] }],
      namespaceSelector: { matchLabels: { policy } },
    });
    await cluster.expect('POST', webhookConfigurationPath(kind), configuration);
    const metric = `kubewarden_policy_evaluations_total{policy_name="${policy}"`;
    await eventually(async () => {
      await cluster.request('POST', `/api/v1/namespaces/${policy}/pods?dryRun=All`, pod('probe'));
      const response = await fetch(`${served.operations}/metrics`);
      assert.ok((await response.text()).includes(metric), 'the API server calls the policy');
    });
  }

  function create(namespace: string, object: KubernetesObject, args: readonly string[] = []): Promise<KubectlResult> {
    return cluster.kubectl(['create', '-n', namespace, ...args, '-f', '-'], { stdin: JSON.stringify(object) });
  }

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-e2e-'));
    await write(policies);
    const certificates = await ensureLocalCertificates(join(folder, 'pki'));
    [cluster, served] = await Promise.all([
      startCluster(),
      serve({ folder, policiesFile: join(folder, 'policies.yml'), certificates }),
    ]);
  });
  after(async () => {
    // Undefined when a start failed.
    await (served as Served | undefined)?.stop();
    await (cluster as Cluster | undefined)?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  it('rejects a pod with the message of the policy, and admits a better one', async () => {
    await enforce('labels', 'validating');
    const rejected = await create('labels', pod('web'));
    assert.equal(rejected.code, 1);
    assert.match(
      rejected.stderr,
      /admission webhook "labels\.portcullis\.test" denied the request: Pod "web" has no label "team": add it under metadata\.labels/,
    );
    const admitted = await create('labels', pod('web', { team: 'shop' }));
    assert.deepEqual(admitted, { stdout: 'pod/web created\n', stderr: '', code: 0 });
    const changed = await cluster.kubectl(['label', '-n', 'labels', 'pod/web', 'team-']);
    assert.match(changed.stderr, /has no label "team"/, 'updates are asked about as well');
  });

  it('stores a pod as the policy mutates it', async () => {
    await enforce('seccomp', 'mutating');
    const created = await create('seccomp', pod('web'));
    assert.equal(created.code, 0, created.stderr);
    const { body } = await cluster.request<{ spec: { securityContext: object } }>(
      'GET',
      '/api/v1/namespaces/seccomp/pods/web',
    );
    assert.deepEqual(body.spec.securityContext, { seccompProfile: { type: 'RuntimeDefault' } });
  });

  it('rejects with the message of a group', async () => {
    await enforce('group', 'validating');
    const rejected = await create('group', pod('web', {}, { hostNetwork: true }));
    assert.equal(rejected.code, 1);
    assert.match(rejected.stderr, /denied the request: only unprivileged pods that share nothing/);
    assert.equal((await create('group', pod('web'))).code, 0);
  });

  it('follows changes of the policies file, but not bad ones', async () => {
    await enforce('swapped', 'validating');
    const verdict = async (): Promise<string> => (await create('swapped', pod('x'), ['--dry-run=server'])).stderr;
    assert.match(await verdict(), /no label "first"/);
    await write({ ...policies, swapped: requires('second') });
    await eventually(async () => assert.match(await verdict(), /no label "second"/));

    await write({ ...policies, swapped: { module: example('required-labels'), settings: { labels: 'nonsense' } } });
    const status = await eventually(async () => {
      const view = (await (await fetch(`${served.operations}/policies/swapped`)).json()) as {
        phase: string;
        message: string;
      };
      assert.equal(view.phase, 'Degraded');
      return view;
    });
    assert.match(status.message, /labels: expected a list/);
    assert.match(await verdict(), /no label "second"/);
    await write('swapped: [');
    assert.match(await verdict(), /no label "second"/);

    await write({ ...policies, swapped: requires('third') });
    await eventually(async () => assert.match(await verdict(), /no label "third"/));
  });

  it('is answered until the server ends, which it does cleanly', async () => {
    assert.equal(await served.stop(), 0);
    const failed = await create('labels', pod('late', { team: 'shop' }));
    assert.match(failed.stderr, /failed calling webhook "labels\.portcullis\.test"/);
  });
});
