// The hub of a controller with a policy server as replica: the rollout of a revision seen from both sides.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { ReplicaHub } from '../../src/lifecycle/index.ts';
import type { AdmissionPolicySpec } from '../../src/resources/index.ts';
import { SharedCaches } from '../../src/runtime/index.ts';
import type { PrevalidationResult } from '../../src/control/index.ts';
import { TestFolder } from '../server/harness.ts';
import { NAMESPACE, openCluster, pinned, requiresLabel, Revisions, startReplica } from '../server/replica-lab.ts';
import { eventually } from '../../src/lifecycle/replicas/testing/hub-scene.ts';

describe('ReplicaHub and a policy server', { timeout: 60_000 }, () => {
  it('see a revision pre-validated, staged and served, a failed one, and the end of the replica', async () => {
    await using cluster = await openCluster();
    await using folder = await TestFolder.create();
    const log = pino({ level: 'silent' });
    const caches = new SharedCaches({ cluster: cluster.admin, log });
    const { controlCertFile: certFile, controlKeyFile: keyFile, caFile } = folder.certificates;
    const tls = { certFile, keyFile, caFile };
    const hub = new ReplicaHub({ cluster: cluster.admin, caches, namespace: NAMESPACE, tls, log });
    const stop = new AbortController();
    const running = [caches.start(stop.signal), hub.start(stop.signal)];
    try {
      const server = await startReplica({ cluster: cluster.admin, folder });
      const id = Revisions.id('p');
      const seen = (): string | undefined =>
        hub
          .replicas('default')?.[0]
          ?.reports(id)
          .map(({ revision, state }) => `${revision}:${state}`)
          .toSorted()
          .join(' ');
      const tried = (spec: unknown): Promise<PrevalidationResult> =>
        hub.prevalidate(
          'default',
          { kind: 'ClusterAdmissionPolicy', metadata: { name: 'p' }, spec: spec as AdmissionPolicySpec },
          stop.signal,
        );
      await eventually(() => hub.replicas('default')?.[0]?.state === 'connected');

      const revisions = new Revisions(cluster.admin);
      const spec = requiresLabel('team');
      await revisions.create('p', 1, spec, { state: 'Validated', modules: [...pinned(await tried(spec))] });
      await eventually(() => seen() === '1:Staged');
      await revisions.setStatus('p', 1, { state: 'Serving', order: 1 });
      await eventually(() => seen() === '1:Serving');

      const bad = await tried({ ...spec, settings: { labels: 1 } });
      assert.ok(!bad.ok && !bad.isTransient, JSON.stringify(bad));
      const missing = await tried({ ...spec, module: 'file:///none.wasm' });
      assert.ok(!missing.ok, JSON.stringify(missing));

      const next = requiresLabel('owner');
      await revisions.create('p', 2, next, { state: 'Validated', modules: [...pinned(await tried(next))] });
      await eventually(() => seen() === '1:Serving 2:Staged');
      await revisions.setStatus('p', 2, { state: 'Serving', order: 2 });
      await revisions.setStatus('p', 1, { state: 'Retired' });
      await eventually(() => seen() === '2:Serving');

      await server[Symbol.asyncDispose]();
      await eventually(() => hub.replicas('default')?.length === 0);
    } finally {
      stop.abort();
      await Promise.all(running);
    }
  });
});
