// The Cluster port on a real API server.
import { readFileSync } from 'node:fs';
import { KubernetesCluster, tokenCredentials } from '../../src/cluster/index.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { startCluster } from '../cluster/cluster.ts';
import { portSuite } from './port-suite.ts';

portSuite(
  'a real API server',
  'kubernetes',
  async () => {
    const server = await startCluster({ users: { alice: {}, bob: {} } });
    const clients = new Map(
      (['admin', 'alice', 'bob'] as const).map((user) => [
        user,
        new KubernetesCluster({
          server: server.url,
          ca: readFileSync(server.caFile, 'utf8'),
          credentials: tokenCredentials(server.token(user)),
        }),
      ]),
    );
    return {
      as: (user) => clients.get(user) as KubernetesCluster,
      close: async () => {
        for (const client of clients.values()) {
          client.close();
        }
        await server.stop();
      },
    };
  },
  skipWithoutCluster(),
);
