// Replicas of one PolicyServer fetch modules from each other over their control ports.
import assert from 'node:assert/strict';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { POLICY_SERVER_REPLICAS } from '../../src/resources/index.ts';
import type { PolicyServerReplica } from '../../src/resources/index.ts';
import { guest, ModuleSource, moduleBytes, review, TestFolder, type TestServer, until } from './harness.ts';
import { folderLike, NAMESPACE, openCluster, pinned, Revisions, startReplica } from './replica-lab.ts';

async function cached({ folder }: TestServer): Promise<string[]> {
  return await readdir(join(folder.dataDir, 'modules', 'sha256')).catch(() => []);
}

describe('replicas', () => {
  it(
    'fetch from the source once for all, and serve where one of them cannot reach it',
    { timeout: 60_000 },
    async () => {
      await using cluster = await openCluster();
      const revisions = new Revisions(cluster.admin);
      await using source = await ModuleSource.start({ kind: 'serve', bytes: await moduleBytes(guest('accept')) });
      await using folder = await TestFolder.create();
      await using otherFolder = await folderLike(folder);
      await using first = await startReplica({ cluster: cluster.admin, folder, name: 'replica-0' });
      await using second = await startReplica({ cluster: cluster.admin, folder: otherFolder, name: 'replica-1' });
      const replicas = async (): Promise<readonly PolicyServerReplica[]> =>
        (await cluster.admin.list<PolicyServerReplica>(POLICY_SERVER_REPLICAS, { namespace: NAMESPACE })).items;
      await until(async () => (await replicas()).filter(({ status }) => status !== undefined).length === 2);

      const snapshot = { module: source.url, settings: {}, mutating: false, rules: [] };
      const found = await first.server.prevalidate({
        kind: 'ClusterAdmissionPolicy',
        metadata: { name: 'p' },
        spec: snapshot as never,
      });
      assert.equal(source.requests, 1);
      source.behaviour = { kind: 'down' };

      const id = Revisions.id('p');
      await revisions.create('p', 1, snapshot, { state: 'Serving', order: 1, modules: pinned(found) } as never);
      for (const server of [first, second]) {
        await server.reaches(id, { phase: 'Active' });
        assert.equal((await server.review(id, review())).allowed, true);
      }
      assert.equal(source.requests, 1);
      assert.deepEqual(await cached(second), await cached(first));
      await until(async () => {
        const [one, two] = (await replicas()).map(({ status }) => status);
        return one?.servingRevisions === 1 && one.setHash === two?.setHash;
      });

      // A replica that lost its disk gets it from the others as well, although the source is available.
      source.behaviour = { kind: 'serve', bytes: await moduleBytes(guest('accept')) };
      await second.server.stop();
      await rm(second.folder.dataDir, { recursive: true });
      await using again = await startReplica({ cluster: cluster.admin, folder: otherFolder, name: 'replica-1' });
      await again.reaches(id, { phase: 'Active' });
      assert.equal(source.requests, 1);
    },
  );
});
