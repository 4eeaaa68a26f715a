// The Cluster port on an embedded cluster: in memory, in a file, and through the gateway with the client for API
// servers.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EmbeddedCluster } from '../../src/apiserver/index.ts';
import { portSuite } from './port-suite.ts';

const GROUPS = ['system:authenticated'];

portSuite('an embedded cluster in memory', 'embedded', async () => {
  const cluster = await EmbeddedCluster.open();
  return {
    as: (user) => (user === 'admin' ? cluster.admin : cluster.as({ username: user, groups: GROUPS })),
    close: () => cluster.close(),
  };
});

portSuite('an embedded cluster in a file', 'embedded', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-embedded-'));
  const cluster = await EmbeddedCluster.open({ file: join(folder, 'cluster.db') });
  return {
    as: (user) => (user === 'admin' ? cluster.admin : cluster.as({ username: user, groups: GROUPS })),
    close: async () => {
      await cluster.close();
      await rm(folder, { recursive: true });
    },
  };
});
