// The Cluster port on an embedded cluster: in memory, in a file, and through the gateway by the client for API servers.
import { EmbeddedCluster } from '../../src/cluster/index.ts';
import { portSuite } from './port-suite.ts';

const GROUPS = ['system:authenticated'];

portSuite('an embedded cluster in memory', 'embedded', async () => {
  const cluster = await EmbeddedCluster.open();
  return {
    as: (user) => (user === 'admin' ? cluster.admin : cluster.as({ username: user, groups: GROUPS })),
    close: () => cluster.close(),
  };
});
