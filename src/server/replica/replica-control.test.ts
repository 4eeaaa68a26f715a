import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ensureLocalCertificates } from '../../control/certificates/index.ts';
import type { LocalCertificates } from '../../control/certificates/index.ts';
import type { PeerAddresses } from '../../modules/index.ts';
import { createLog } from '../../log/index.ts';
import { PEERS_WAIT_MS, ReplicaControl } from './replica-control.ts';
import { ControlCaller } from '../../control/testing/index.ts';
import { ReplicaCluster } from './testing/replica-cluster.ts';
import { TestReplicaState } from './testing/test-replica-state.ts';

describe('ReplicaControl', () => {
  let folder: string;
  let pki: LocalCertificates;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'portcullis-replica-'));
    pki = await ensureLocalCertificates(folder);
  });
  after(() => rmSync(folder, { recursive: true }));

  function control(
    scene: ReplicaCluster,
    name: string,
    peersChanged: (addresses: PeerAddresses) => void,
  ): ReplicaControl {
    const tls = { certFile: pki.controlCertFile, keyFile: pki.controlKeyFile, caFile: pki.caFile };
    return new ReplicaControl({
      replica: {
        cluster: scene.cluster,
        namespace: 'portcullis',
        policyServer: 'default',
        name,
        control: { host: '127.0.0.1', port: 0, advertise: '127.0.0.2', tls },
      },
      state: new TestReplicaState(),
      prevalidate: async () => ({ ok: true, modules: [] }),
      readModule: async () => undefined,
      peersChanged,
      log: createLog({ level: 'silent' }),
    });
  }

  it('reports peers when it has started, publishes its own address, and removes it when it stops', async () => {
    await using scene = await ReplicaCluster.open();
    let peers: readonly string[] = [];
    const first = control(scene, 'a', () => undefined);
    const second = control(scene, 'b', (addresses) => (peers = addresses.replicas));
    const address = await first.start();
    await scene.until('a', ({ spec }) => spec.controlAddress === address);
    assert.match(address, /^127\.0\.0\.2:\d+$/);
    await second.start();
    assert.deepEqual(peers, [address]);
    await Promise.all([first.stop(), second.stop()]);
    assert.deepEqual([await scene.replica('a'), await scene.lease('b')], [undefined, undefined]);
  });

  it('starts while the API server is down, and can be stopped', { timeout: 10 * PEERS_WAIT_MS }, async () => {
    await using scene = await ReplicaCluster.open();
    scene.isDown = true;
    const replica = control(scene, 'a', () => undefined);
    const port = Number((await replica.start()).split(':')[1]);
    const caller = new ControlCaller(port, {
      certFile: pki.controlCertFile,
      keyFile: pki.controlKeyFile,
      caFile: pki.caFile,
    });
    assert.equal(
      (await caller.prevalidate({ kind: 'ClusterAdmissionPolicy', metadata: { name: 'p' }, spec: { module: 'm' } }))
        .status,
      200,
    );
    await replica.stop();
  });
});
