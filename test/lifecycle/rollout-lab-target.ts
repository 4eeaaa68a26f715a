// The API servers of the lab: an embedded cluster behind its gateway, and a real one with etcd. Both can crash and
// restart with their stored data.
import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EmbeddedCluster, Gateway } from '../../src/apiserver/index.ts';
import { startCluster } from '../cluster/cluster.ts';
import { createLoopbackCertificate } from '../cluster/loopback-certificate.ts';
import type { Upstream } from './rollout-lab-proxy.ts';

/** Users of the API server. Tenants see one namespace each; the reader sees policies only. */
const LAB_USERS = ['admin', 'controller', 'replica', 'reader', 'red', 'blue'] as const;
export type LabUser = (typeof LAB_USERS)[number];

/** What can crash: the store of the API server, or the API server alone. */
export type CrashedPart = 'etcd' | 'api-server';

export interface LabTarget extends AsyncDisposable {
  readonly upstream: Upstream;
  readonly tokens: Readonly<Record<LabUser, string>>;
  /** Whether requests use a webhook configuration as soon as it is written. */
  readonly usesConfigurationsAtOnce: boolean;
  /** The parts that can crash. */
  readonly parts: readonly CrashedPart[];
  crash(part: CrashedPart): Promise<void>;
  /** Restarts everything, perhaps at another address: see `upstream`. */
  revive(): Promise<void>;
}

/** An embedded cluster in a file. */
export async function embeddedTarget(): Promise<LabTarget> {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-rollout-'));
  const tokens = Object.fromEntries(LAB_USERS.map((user) => [user, randomBytes(18).toString('base64url')])) as Record<
    LabUser,
    string
  >;
  const tls = await createLoopbackCertificate();
  const open = async (): Promise<{ cluster: EmbeddedCluster; gateway: Gateway; upstream: Upstream }> => {
    const cluster = await EmbeddedCluster.open({
      file: join(folder, 'cluster.sqlite'),
      isRecovering: false,
      tokens: LAB_USERS.map((user) => ({
        token: tokens[user],
        user: {
          username: user,
          groups: [...(user === 'admin' ? ['system:masters'] : []), 'system:authenticated'],
        },
      })),
    });
    const gateway = new Gateway({ cluster, authenticator: cluster.authenticator, tls, drainMs: 0 });
    const { url } = await gateway.start({ port: 0 });
    return { cluster, gateway, upstream: { url, ca: tls.cert } };
  };
  let current: Awaited<ReturnType<typeof open>> | undefined = await open();
  let { upstream } = current;
  const crash = async (): Promise<void> => {
    const gone = current;
    current = undefined;
    await gone?.gateway.stop();
    await gone?.cluster.close();
  };
  return {
    get upstream() {
      return upstream;
    },
    tokens,
    usesConfigurationsAtOnce: true,
    parts: ['api-server'],
    crash,
    revive: async () => {
      current ??= await open();
      ({ upstream } = current);
    },
    [Symbol.asyncDispose]: async () => {
      await crash();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A kube-apiserver with etcd. */
export async function realTarget(): Promise<LabTarget> {
  const cluster = await startCluster({
    users: Object.fromEntries(LAB_USERS.filter((user) => user !== 'admin').map((user) => [user, {}])),
  });
  return {
    upstream: { url: cluster.url, ca: await readFile(cluster.caFile, 'utf8') },
    tokens: Object.fromEntries(LAB_USERS.map((user) => [user, cluster.token(user)])) as Record<LabUser, string>,
    usesConfigurationsAtOnce: false,
    parts: ['etcd', 'api-server'],
    crash: (part) => cluster.crash(part === 'etcd' ? 'etcd' : 'kube-apiserver'),
    revive: () => cluster.revive(),
    [Symbol.asyncDispose]: () => cluster.stop(),
  };
}
