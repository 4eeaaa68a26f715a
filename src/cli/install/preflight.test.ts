import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ADMIN_USER, EmbeddedCluster } from '../../apiserver/index.ts';
import { CliError } from '../errors.ts';
import { CLUSTER_BINDINGS, CONTROLLER } from '../../installation/index.ts';
import { checkNamespace } from './preflight.ts';

describe('before anything is changed', () => {
  it('another namespace than that of the existing Portcullis is refused, with its name', async () => {
    const embedded = await EmbeddedCluster.open();
    try {
      const cluster = embedded.as(ADMIN_USER);
      await checkNamespace(cluster, 'portcullis');
      await cluster.create(CLUSTER_BINDINGS, {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata: { name: CONTROLLER },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: CONTROLLER },
        subjects: [{ kind: 'ServiceAccount', name: CONTROLLER, namespace: 'policies' }],
      });
      await checkNamespace(cluster, 'policies');
      await assert.rejects(
        checkNamespace(cluster, 'portcullis'),
        (error) =>
          error instanceof CliError && /installed in namespace policies, not in portcullis/.test(error.message),
      );
    } finally {
      await embedded.close();
    }
  });
});
