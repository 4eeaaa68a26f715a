// A replica that restarts while it has no use of its API server, in each way that happens: it answers as before, by what it recorded.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { cp, readdir, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type EmbeddedCluster, Gateway } from '../../src/apiserver/index.ts';
import { type Cluster, KubernetesCluster, tokenCredentials } from '../../src/cluster/index.ts';
import { kubernetesKind, type ResourceType } from '../../src/resources/index.ts';
import { createLoopbackCertificate, type LoopbackCertificate } from '../cluster/loopback-certificate.ts';
import { review, type ReviewResponse, TestFolder, type TestServer, until } from './harness.ts';
import { openCluster, pinned, requiresLabel, Revisions, startReplica } from './replica-lab.ts';

const BUCKET = 'validating.fail.equivalent.cluster.v1';
const NAMESPACES = kubernetesKind('v1', 'Namespace') as ResourceType;
const PODS = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }];
/** What a replica records besides modules. */
const RECORDS = ['serving.json', 'namespaces.json'];

describe('a replica that restarts without an API server that it can use', () => {
  let embedded: EmbeddedCluster;
  let folder: TestFolder;
  let tls: LoopbackCertificate;
  let gateway: Gateway;
  let gatewayUrl: string;
  const servers: Server[] = [];
  const clients: KubernetesCluster[] = [];

  before(async () => {
    tls = await createLoopbackCertificate();
    embedded = await openCluster();
    gateway = new Gateway({ cluster: embedded, authenticator: embedded.authenticator, tls });
    gatewayUrl = (await gateway.start({ port: 0 })).url;
    folder = await TestFolder.create();
    await record();
  });
  after(async () => {
    for (const client of clients) {
      client.close();
    }
    for (const server of servers) {
      server.closeAllConnections();
      server.close();
    }
    await gateway.stop();
    await embedded.close();
    await folder[Symbol.asyncDispose]();
  });

  /** Serves a policy for namespaces with a label, and ends. */
  async function record(): Promise<void> {
    const { admin } = embedded;
    for (const [name, env] of [
      ['shop', 'prod'],
      ['office', 'test'],
    ] as const) {
      await admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: { env } } });
    }
    const spec = requiresLabel('one', { rules: PODS, namespaceSelector: { matchLabels: { env: 'prod' } } });
    await using server = await startReplica({ cluster: admin, folder });
    const policy = { kind: 'ClusterAdmissionPolicy', metadata: { name: 'prod' }, spec: spec as never } as const;
    const modules = pinned(await server.server.prevalidate(policy));
    await new Revisions(admin).create('prod', 1, spec, { state: 'Serving', order: 1, modules });
    await server.reaches(Revisions.id('prod'), { phase: 'Active' });
    await until(() => RECORDS.every((name) => existsSync(join(folder.dataDir, name))));
  }

  function connect(server: string, token: string): Cluster {
    const client = new KubernetesCluster({ server, ca: tls.cert, credentials: tokenCredentials(token) });
    clients.push(client);
    return client;
  }

  /** A server in the place of the API server. */
  async function connectTo(server: Server): Promise<Cluster> {
    servers.push(server);
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    return connect(`https://127.0.0.1:${(server.address() as AddressInfo).port}`, 'any');
  }

  const unusable: Readonly<Record<string, () => Promise<Cluster>>> = {
    'that refuses its token': async () => connect(gatewayUrl, 'expired'),
    'that answers 429 to all requests': () =>
      connectTo(
        createServer(tls, (_request, response) => {
          response.writeHead(429, { 'retry-after': '1' }).end();
        }),
      ),
    'that accepts connections and never answers': () => connectTo(createServer(tls, () => {})),
  };

  /** A copy of what the replica left. */
  async function left(): Promise<TestFolder> {
    const copy = await TestFolder.create();
    await cp(folder.path, copy.path, { recursive: true });
    return copy;
  }

  function admit(server: TestServer, namespace: string): Promise<ReviewResponse> {
    return server.review(BUCKET, review({ namespace }), { route: 'admit' });
  }

  for (const [how, open] of Object.entries(unusable)) {
    it(`answers as before beside one ${how}`, async () => {
      await using restarted = await left();
      await using server = await startReplica({ cluster: await open(), folder: restarted, readyWaitMs: 2_500 });
      await server.reaches(Revisions.id('prod'), { phase: 'Updating', reason: 'ServingFromRecord' });
      assert.match((await admit(server, 'shop')).status?.message ?? '', /"one"/);
      assert.equal((await admit(server, 'office')).allowed, true);
      assert.equal((await server.get('/readyz')).status, 200);
    });

    it(`evaluates nothing beside one ${how} when it has no records`, async () => {
      await using restarted = await left();
      for (const name of RECORDS) {
        await rm(join(restarted.dataDir, name));
      }
      assert.ok((await readdir(restarted.dataDir)).includes('modules'));
      await using server = await startReplica({ cluster: await open(), folder: restarted, readyWaitMs: 50 });
      const answer = await server.post(`/admit/${BUCKET}`, JSON.stringify(review({ namespace: 'shop' })));
      assert.equal(answer.status, 503);
    });
  }
});
