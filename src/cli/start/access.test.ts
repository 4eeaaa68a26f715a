import assert from 'node:assert/strict';
import { it } from 'node:test';
import { EmbeddedCluster } from '../../apiserver/index.ts';
import { knownKind } from '../../resources/index.ts';
import { grantAccess, grantGovernance } from './access.ts';

const KINDS = ['ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding'].map((kind) =>
  knownKind('rbac.authorization.k8s.io/v1', kind),
);

async function governanceObjects(cluster: EmbeddedCluster): Promise<readonly string[]> {
  const lists = await Promise.all(KINDS.map((kind) => cluster.admin.list(kind)));
  const names = lists.flatMap(({ items }) => items.map(({ kind, metadata }) => `${kind}/${metadata.name}`));
  return names.filter((name) => name.includes('portcullis') && name.includes('governance'));
}

it('rights of governance go when it is turned off', async () => {
  await using cluster = await EmbeddedCluster.open();
  await grantAccess(cluster);
  assert.deepEqual(await governanceObjects(cluster), []);
  await grantGovernance(cluster, ['edit']);
  assert.ok((await governanceObjects(cluster)).includes('ClusterRoleBinding/portcullis-governance-edit'));
  await grantGovernance(cluster, undefined);
  assert.deepEqual(await governanceObjects(cluster), []);
});
