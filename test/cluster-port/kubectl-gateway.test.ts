// The Cluster port through a gateway: the client for API servers on an embedded cluster.
import { EmbeddedCluster, Gateway } from '../../src/apiserver/index.ts';
import { KubernetesCluster, tokenCredentials } from '../../src/cluster/index.ts';
import { createLoopbackCertificate } from '../cluster/loopback-certificate.ts';
import { portSuite } from './port-suite.ts';

const USERS = ['admin', 'alice', 'bob'] as const;

portSuite('an embedded cluster through its gateway', 'embedded', async () => {
  const tls = await createLoopbackCertificate();
  const tokens = USERS.map((username) => ({
    token: `${username}-token`,
    user: {
      username,
      groups: [...(username === 'admin' ? ['system:masters'] : []), 'system:authenticated'],
    },
  }));
  const cluster = await EmbeddedCluster.open({ tokens });
  const gateway = new Gateway({
    cluster,
    authenticator: cluster.authenticator,
    tls,
    onError: (error) => console.error(error),
  });
  const { url } = await gateway.start({ port: 0 });
  const clients = new Map(
    USERS.map((user) => [
      user,
      new KubernetesCluster({ server: url, ca: tls.cert, credentials: tokenCredentials(`${user}-token`) }),
    ]),
  );
  return {
    as: (user) => clients.get(user) as KubernetesCluster,
    close: async () => {
      for (const client of clients.values()) {
        client.close();
      }
      await gateway.stop();
      await cluster.close();
    },
  };
});
