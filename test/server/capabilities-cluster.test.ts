// The thread of host capabilities with a cluster: an embedded one behind its gateway, read with a kubeconfig.
import assert from 'node:assert/strict';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { EmbeddedCluster, Gateway, writeKubeconfig } from '../../src/apiserver/index.ts';
import { kubernetesKind } from '../../src/resources/index.ts';
import type { ClusterSource } from '../../src/evaluation/index.ts';
import { createLoopbackCertificate } from '../cluster/loopback-certificate.ts';
import { example, requires, review, startServer, type TestServer, until } from './harness.ts';
import { Threads } from './threads.ts';

const owner = {
  module: example('namespace-owner'),
  settings: { label: 'owner' },
  contextAwareResources: [{ apiVersion: 'v1', kind: 'Namespace' }],
  hostCapabilities: ['kubernetes/get_resource'],
};

/** A cluster that a server can read with a kubeconfig. */
async function world() {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-capabilities-'));
  const token = 'admin-token';
  const user = { username: 'admin', groups: ['system:masters', 'system:authenticated'] };
  const cluster = await EmbeddedCluster.open({ tokens: [{ token, user }] });
  const tls = await createLoopbackCertificate();
  const gateway = new Gateway({ cluster, authenticator: cluster.authenticator, tls });
  const { url } = await gateway.start({ port: 0 });
  const file = join(folder, 'kubeconfig');
  await writeKubeconfig(file, { server: url, ca: tls.cert, token });
  const type = kubernetesKind('v1', 'Namespace');
  assert.ok(type);
  const source: ClusterSource = { kind: 'kubeconfig', file, env: {} };
  return {
    file,
    source,
    label: (name: string, labels: Record<string, string>) =>
      cluster.admin.patch(type, { name }, { type: 'merge', body: { metadata: { labels } } }),
    async [Symbol.asyncDispose]() {
      await gateway.stop();
      await cluster.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function verdict(server: TestServer): Promise<string> {
  const { allowed, status } = await server.review('owner', review({ namespace: 'default' }));
  return allowed ? 'allowed' : (status?.message ?? '');
}

describe('the thread of host capabilities with a cluster', () => {
  it('starts with the first policy that declares a kind', async () => {
    await using cluster = await world();
    using threads = new Threads();
    await using server = await startServer({ policies: { good: requires('app') }, cluster: cluster.source });
    assert.equal(threads.named('host capabilities').length, 0);
    await server.write({ good: requires('app'), owner });
    await until(() => threads.named('host capabilities').length === 1);
    await server.reaches('owner', { phase: 'Active' });
    await until(async () => (await verdict(server)).includes('has no label "owner"'));
    await cluster.label('default', { owner: 'me' });
    await until(async () => (await verdict(server)) === 'allowed');
  });

  it('reads again after it was replaced', async () => {
    await using cluster = await world();
    await cluster.label('default', { owner: 'me' });
    using threads = new Threads();
    await using server = await startServer({ policies: { owner }, cluster: cluster.source });
    await until(async () => (await verdict(server)) === 'allowed');
    await threads.named('host capabilities')[0]?.terminate();
    await until(async () => (await verdict(server)) === 'allowed');
    await cluster.label('default', { owner: '' });
    await until(async () => (await verdict(server)).includes('has no label "owner"'));
  });

  it('reports an invalid kubeconfig, and reads once it is valid', async () => {
    await using cluster = await world();
    const file = `${cluster.file}.new`;
    await writeFile(file, '{"kind": "Config", "apiVersion": "v1", "current-context": "none"}');
    await using server = await startServer({ policies: { owner }, cluster: { kind: 'kubeconfig', file, env: {} } });
    await until(async () => /kubeconfig .*expected a context named "none"/.test(await verdict(server)));
    assert.ok(server.log.some(({ msg }) => msg === 'the cluster cannot be read'));
    await rename(cluster.file, file);
    await until(async () => (await verdict(server)).includes('has no label "owner"'));
  });

  it('fails reads when no cluster is configured', async () => {
    await using server = await startServer({ policies: { owner } });
    assert.match(await verdict(server), /no cluster is configured/);
  });
});
