// Replicas that report to a controller and read from a real API server, with exactly their own rights.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { KubernetesCluster, tokenCredentials } from '../../src/cluster/index.ts';
import { customResourceDefinition, OWN_KINDS, POLICY_SERVER_REPLICAS } from '../../src/resources/index.ts';
import type { PolicyServerReplica } from '../../src/resources/index.ts';
import { REPLICA_RULES } from '../../src/control/access-rules/index.ts';
import { ensureLocalCertificates } from '../../src/control/certificates/index.ts';
import { ReplicaControl } from '../../src/server/replica/replica-control.ts';
import { setHash } from '../../src/server/replica/replica-status.ts';
import { TestReplicaState } from '../../src/server/replica/testing/test-replica-state.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { type Cluster, startCluster } from '../cluster/cluster.ts';
import { eventually } from '../cluster/eventually.ts';

const NAMESPACE = 'portcullis';
const log = pino({ level: 'silent' });

describe('replicas on a real API server', { skip: skipWithoutCluster() }, () => {
  let server: Cluster;
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-replica-'));
    server = await startCluster({ users: { replica: {} } });
    await server.createNamespace(NAMESPACE);
    const subject = { kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'replica' };
    const rbac = 'rbac.authorization.k8s.io/v1';
    const metadata = { name: 'replica', namespace: NAMESPACE };
    const items = [
      ...OWN_KINDS.map((kind) => customResourceDefinition(kind)),
      { apiVersion: rbac, kind: 'Role', metadata, rules: REPLICA_RULES },
      {
        apiVersion: rbac,
        kind: 'RoleBinding',
        metadata,
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'replica' },
        subjects: [subject],
      },
    ];
    const applied = await server.kubectl(['apply', '-f', '-'], {
      stdin: JSON.stringify({ apiVersion: 'v1', kind: 'List', items }),
    });
    assert.equal(applied.code, 0, applied.stderr);
    for (const { plural, group } of OWN_KINDS.map(({ declaration }) => declaration)) {
      await server.kubectl(['wait', '--for=condition=Established', `crd/${plural}.${group}`, '--timeout=20s']);
    }
  });
  after(async () => {
    await server[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  const connect = (token: string): KubernetesCluster => {
    const ca = readFileSync(server.caFile, 'utf8');
    return new KubernetesCluster({ server: server.url, ca, credentials: tokenCredentials(token) });
  };

  it('report, know each other, cause no writes when nothing happens, and leave', { timeout: 60_000 }, async () => {
    const { caFile, controlCertFile: certFile, controlKeyFile: keyFile } = await ensureLocalCertificates(folder);
    const states = [new TestReplicaState(), new TestReplicaState()];
    const clusters = states.map(() => connect(server.token('replica')));
    const peers: (readonly string[])[] = [[], []];
    const controls = states.map(
      (state, i) =>
        new ReplicaControl({
          replica: {
            cluster: clusters[i]!,
            namespace: NAMESPACE,
            policyServer: 'default',
            name: `replica-${i}`,
            control: { host: '127.0.0.1', port: 0, tls: { certFile, keyFile, caFile } },
          },
          state,
          prevalidate: async () => ({ ok: true, modules: [] }),
          readModule: async () => undefined,
          peersChanged: (addresses) => (peers[i] = addresses.replicas),
          log,
        }),
    );
    const addresses = await Promise.all(controls.map((control) => control.start()));
    const admin = connect(server.adminToken);
    const replicas = async (): Promise<readonly PolicyServerReplica[]> =>
      (await admin.list<PolicyServerReplica>(POLICY_SERVER_REPLICAS, { namespace: NAMESPACE })).items;
    const served = [{ policy: 'p', revision: 1, digest: 'x' }];
    for (const state of states) {
      state.servedRevisions = served;
      state.notify();
    }
    await eventually(async () => {
      const all = await replicas();
      assert.deepEqual(
        all.map(({ status }) => status?.setHash),
        [setHash(served), setHash(served)],
      );
      assert.deepEqual(peers, [[addresses[1]], [addresses[0]]]);
    });
    const versions = async (): Promise<unknown> => (await replicas()).map(({ metadata }) => metadata.resourceVersion);
    await sleep(2_500);
    const settled = await versions();
    await sleep(2_500);
    assert.deepEqual(await versions(), settled);
    const table = await server.kubectl(['get', 'psr', '-n', NAMESPACE]);
    assert.match(table.stdout, /replica-0 +default +1 +0 +0/);

    await server.kubectl(['delete', 'psr', 'replica-0', '-n', NAMESPACE]);
    await eventually(async () =>
      assert.equal((await replicas()).filter(({ status }) => status !== undefined).length, 2),
    );
    await Promise.all(controls.map((control) => control.stop()));
    assert.deepEqual(await replicas(), []);
    const leases = await server.kubectl(['get', 'leases', '-n', NAMESPACE, '-o', 'name']);
    assert.equal(leases.stdout, '');
    for (const cluster of [...clusters, admin]) {
      cluster.close();
    }
  });
});
