// The governance lab behind a gateway, for commands that run as users of its cluster.
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type EmbeddedCluster, Gateway, writeKubeconfig } from '../../src/apiserver/index.ts';
import type { Cluster } from '../../src/cluster/index.ts';
import { type CommandResult, portcullis } from '../cli/command.ts';
import { findBinary } from '../cluster/binaries.ts';
import { runClient } from '../cluster/client-command.ts';
import { createLoopbackCertificate } from '../cluster/loopback-certificate.ts';
import { type ExampleCluster, succeeding } from './example-cluster.ts';
import { GovernanceLab } from './governance-lab.ts';

export type LabUser = 'admin' | 'alice';

/** Created by {@link ServedLab.start}. */
export class ServedLab implements AsyncDisposable, ExampleCluster {
  readonly lab: GovernanceLab;
  readonly #gateway: Gateway;
  /** With a kubeconfig for each user. */
  readonly #folder: string;

  private constructor(lab: GovernanceLab, gateway: Gateway, folder: string) {
    this.lab = lab;
    this.#gateway = gateway;
    this.#folder = folder;
  }

  /** @param controllers the user that the controllers are */
  static async start(controllers?: string): Promise<ServedLab> {
    const groups = { admin: ['system:masters', 'system:authenticated'], alice: ['system:authenticated'] };
    const users = (['admin', 'alice'] as const).map((username) => ({
      token: randomBytes(18).toString('base64url'),
      user: { username, groups: groups[username] },
    }));
    const as = (cluster: EmbeddedCluster): Cluster | undefined =>
      controllers === undefined ? undefined : cluster.as({ username: controllers, groups: ['system:masters'] });
    const lab = await GovernanceLab.start({ tokens: users, as });
    const tls = await createLoopbackCertificate();
    const gateway = new Gateway({ cluster: lab.cluster, authenticator: lab.cluster.authenticator, tls, drainMs: 0 });
    const { url } = await gateway.start({ port: 0 });
    const folder = await mkdtemp(join(tmpdir(), 'portcullis-governance-'));
    for (const { token, user } of users) {
      await writeKubeconfig(join(folder, user.username), { server: url, ca: tls.cert, token });
    }
    return new ServedLab(lab, gateway, folder);
  }

  /** Runs `portcullis ARGS` as a user. */
  async run(user: LabUser, ...args: readonly string[]): Promise<CommandResult> {
    return await portcullis(args, { env: { KUBECONFIG: join(this.#folder, user) } });
  }

  get objects(): GovernanceLab {
    return this.lab;
  }

  readonly kubectl = succeeding((args, stdin) =>
    runClient(findBinary('kubectl') ?? 'kubectl', args, {
      kubeconfig: join(this.#folder, 'admin'),
      folder: this.#folder,
      stdin,
    }),
  );

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#gateway.stop();
    await this.lab[Symbol.asyncDispose]();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
