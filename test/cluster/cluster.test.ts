import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { clusterAvailable, kubernetesVersion, skipWithoutCluster } from './binaries.ts';
import { startCluster } from './cluster.ts';
import type { Cluster, KubernetesObject } from './cluster.ts';
import { eventually } from './eventually.ts';
import { createLoopbackCertificate } from './loopback-certificate.ts';
import type { LoopbackCertificate } from './loopback-certificate.ts';
import { webhookConfiguration, webhookConfigurationPath } from './webhook-configuration.ts';

const skip = skipWithoutCluster();

function pod(name: string, namespace: string): KubernetesObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace },
    spec: { containers: [{ name: 'main', image: 'registry.test/pause:1' }] },
  };
}

/** Whether the command line of any process contains the text. On other systems than Linux always false. */
function someProcessMentions(text: string): boolean {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .some((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(text) && readlinkSync(`/proc/${pid}/exe`) !== '';
      } catch {
        return false;
      }
    });
}

interface Review {
  readonly request: { readonly uid: string; readonly name: string; readonly operation: string };
}

/** Starts a webhook. It responds to each review with the fields that `answer` returns. */
async function startWebhook(
  certificate: LoopbackCertificate,
  answer: (request: Review['request']) => object,
): Promise<{ url: string } & AsyncDisposable> {
  const server = createServer(certificate, (request, response) => {
    void json(request).then((body) => {
      const review = body as Review;
      response.setHeader('content-type', 'application/json');
      const verdict = { uid: review.request.uid, ...answer(review.request) };
      response.end(JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: verdict }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/validate`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

describe('the test cluster', { skip }, () => {
  let cluster: Cluster;
  let certificate: LoopbackCertificate;
  before(async () => {
    [cluster, certificate] = await Promise.all([
      startCluster({ users: { alice: { groups: ['developers'] } } }),
      createLoopbackCertificate(),
    ]);
  });
  // Undefined when the start failed.
  after(() => (cluster as Cluster | undefined)?.stop());

  it('is the pinned release and answers kubectl', async () => {
    const { status, body } = await cluster.request<{ gitVersion: string }>('GET', '/version');
    assert.equal(status, 200);
    assert.equal(body.gitVersion, kubernetesVersion());
    const created = await cluster.kubectl(['create', 'namespace', 'by-kubectl']);
    assert.deepEqual(created, { stdout: 'namespace/by-kubectl created\n', stderr: '', code: 0 });
    const applied = await cluster.kubectl(['apply', '-f', '-'], { stdin: JSON.stringify(pod('first', 'by-kubectl')) });
    assert.equal(applied.code, 0, applied.stderr);
    const read = await cluster.request<{ status: { phase: string } }>(
      'GET',
      '/api/v1/namespaces/by-kubectl/pods/first',
    );
    assert.equal(read.body.status.phase, 'Pending');
  });

  it('keeps its credentials to this user', () => {
    assert.equal(statSync(cluster.kubeconfig).mode & 0o777, 0o600);
    assert.equal(statSync(cluster.folder).mode & 0o777, 0o700);
  });

  it('knows users without rights', async () => {
    const asAlice = await cluster.request('POST', '/api/v1/namespaces', {}, { user: 'alice' });
    assert.equal(asAlice.status, 403);
    const refused = await cluster.kubectl(['get', 'secrets'], { user: 'alice' });
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /User "alice" cannot list resource "secrets"/);
    assert.throws(() => cluster.token('bob'), /no user bob: expected one of alice, admin/);
    await assert.rejects(
      cluster.expect('GET', '/api/v1/namespaces/none'),
      /expected success, got 404: namespaces "none" not found/,
    );
  });

  it('calls a validating webhook and shows its message', async () => {
    await using webhook = await startWebhook(certificate, ({ name }) =>
      name === 'forbidden'
        ? { allowed: false, status: { code: 418, message: 'pods of this name are not wanted' } }
        : { allowed: true },
    );
    await cluster.createNamespace('validated', { webhook: 'validated' });
    const configuration = webhookConfiguration({
      name: 'validated',
      kind: 'validating',
      url: webhook.url,
      caBundle: certificate.cert,
      rules: [{ operations: ['CREATE'], resources: ['pods'] }],
      namespaceSelector: { matchLabels: { webhook: 'validated' } },
    });
    await cluster.expect('POST', webhookConfigurationPath('validating'), configuration);
    await eventually(async () => {
      const dryRun = '/api/v1/namespaces/validated/pods?dryRun=All';
      const { status } = await cluster.request('POST', dryRun, pod('forbidden', 'validated'));
      assert.equal(status, 418);
    });
    const rejected = await cluster.kubectl(['create', '-f', '-'], {
      stdin: JSON.stringify(pod('forbidden', 'validated')),
    });
    assert.equal(rejected.code, 1);
    assert.match(
      rejected.stderr,
      /admission webhook "validated.portcullis.test" denied the request: pods of this name are not wanted/,
    );
    const admitted = await cluster.kubectl(['create', '-f', '-'], {
      stdin: JSON.stringify(pod('allowed', 'validated')),
    });
    assert.equal(admitted.code, 0, admitted.stderr);
  });

  it('lets a mutating webhook change an object', async () => {
    const patch = [{ op: 'add', path: '/metadata/labels', value: { changed: 'yes' } }];
    await using webhook = await startWebhook(certificate, () => ({
      allowed: true,
      patchType: 'JSONPatch',
      patch: Buffer.from(JSON.stringify(patch)).toString('base64'),
    }));
    await cluster.createNamespace('mutated', { webhook: 'mutated' });
    const configuration = webhookConfiguration({
      name: 'mutated',
      kind: 'mutating',
      url: webhook.url,
      caBundle: certificate.cert,
      rules: [{ operations: ['CREATE'], resources: ['pods'] }],
      namespaceSelector: { matchLabels: { webhook: 'mutated' } },
      failurePolicy: 'Ignore',
      reinvocationPolicy: 'IfNeeded',
    });
    await cluster.expect('POST', webhookConfigurationPath('mutating'), configuration);
    await eventually(async () => {
      const created = await cluster.expect('POST', '/api/v1/namespaces/mutated/pods?dryRun=All', pod('any', 'mutated'));
      assert.deepEqual(created.metadata.labels, { changed: 'yes' });
    });
  });
});

describe('stopping the test cluster', { skip }, () => {
  it('leaves no process and no file', async () => {
    const cluster = await startCluster();
    assert.ok(someProcessMentions(cluster.folder));
    await cluster.stop();
    await cluster.stop();
    assert.ok(!someProcessMentions(cluster.folder));
    assert.ok(!existsSync(cluster.folder));
  });

  it('happens by itself when the process that started it is killed', async () => {
    const script = `
      import { startCluster } from ${JSON.stringify(new URL('./cluster.ts', import.meta.url).href)};
      const cluster = await startCluster();
      process.stdout.write(cluster.folder);
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const folder = await new Promise<string>((resolve, reject) => {
      child.stdout.once('data', (data: Buffer) => resolve(data.toString()));
      child.once('exit', () => reject(new Error('the child ended before its cluster had started')));
    });
    assert.ok(someProcessMentions(folder));
    child.kill('SIGKILL');
    await eventually(
      async () => {
        assert.ok(!someProcessMentions(folder));
        assert.ok(!existsSync(folder));
      },
      { timeoutMs: 30_000 },
    );
  });

  it('follows a start that failed, and the error has the end of the log', async () => {
    const availability = clusterAvailable();
    assert.ok(availability.available, availability.available ? '' : availability.reason);
    await assert.rejects(
      startCluster({ apiServerArgs: ['--no-such-flag'] }),
      /kube-apiserver ended with exit code 1 while the test cluster started[^]*unknown flag: --no-such-flag/,
    );
    assert.ok(!someProcessMentions('--no-such-flag'));
    await assert.rejects(
      startCluster({ binaries: { ...availability.binaries, etcd: '/nonexistent/etcd' } }),
      /etcd ended with exit code 127[^]*\/nonexistent\/etcd/,
    );
  });
});

describe('clusterAvailable', () => {
  it('names what is missing and how to get it', () => {
    const empty = mkdtempSync(join(tmpdir(), 'portcullis-empty-'));
    try {
      const env = { PORTCULLIS_CACHE: empty, PATH: empty };
      const availability = clusterAvailable(env);
      assert.ok(!availability.available);
      assert.match(
        availability.reason,
        /kube-apiserver, kube-controller-manager, etcd, kubectl, helm not found in .*; build with "npm run cluster:build"$/,
      );
      assert.equal(skipWithoutCluster(env), availability.reason);
      assert.equal(skipWithoutCluster({ ...env, CI: 'true' }), false);
    } finally {
      rmSync(empty, { recursive: true });
    }
  });
});
