// A cluster whose controller and webhook run in this process, for a network provider that reports for itself.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { EmbeddedCluster, Gateway, kubeconfigText } from '../../src/apiserver/index.ts';
import { KubernetesCluster, tokenCredentials } from '../../src/cluster/index.ts';
import { ensureLocalCertificates } from '../../src/control/certificates/index.ts';
import { userRoles } from '../../src/installation/objects/index.ts';
import { OwnKindsWebhook } from '../../src/lifecycle/index.ts';
import { OWN_KINDS_RULES } from '../../src/lifecycle/access-rules/index.ts';
import { NetworkPolicyControllers, ReportGuard } from '../../src/network-policy/index.ts';
import {
  NETWORK_POLICY_READER_RULES,
  NETWORK_POLICY_STATUS_RULES,
  NETWORK_POLICY_SUBRESOURCE_RULES,
} from '../../src/network-policy/access-rules/index.ts';
import {
  type AccessRule,
  customResourceDefinition,
  knownKind,
  NETWORK_POLICY_KINDS,
  NETWORK_POLICY_PROVIDERS,
  NETWORK_POLICY_STATUSES,
} from '../../src/resources/index.ts';
import { EventRecorder, SharedCaches } from '../../src/runtime/index.ts';
import { findBinary } from '../cluster/binaries.ts';
import { type CommandResult, portcullis } from '../cli/command.ts';
import { runClient } from '../cluster/client-command.ts';
import { startCluster } from '../cluster/cluster.ts';
import { eventually } from '../cluster/eventually.ts';
import { createLoopbackCertificate } from '../cluster/loopback-certificate.ts';

const USERS = ['admin', 'controller', 'reporter', 'mallory'] as const;
export type ReportingUser = (typeof USERS)[number];
const CONTROLLER = 'controller';
const REPORTER_ROLE = 'portcullis-network-policy-reporter';
const RBAC = 'rbac.authorization.k8s.io/v1';
const log = pino({ level: 'silent' });

const STRAY = {
  apiVersion: 'portcullis.dev/v1',
  kind: 'NetworkPolicyStatus',
  metadata: { name: 'stray', namespace: 'default' },
  spec: {},
} as const;
const REFUSED = /only the controller and reporters create it/;

/** An API server, and what its users connect with. */
interface Served {
  readonly url: string;
  readonly ca: string;
  readonly tokens: Readonly<Record<ReportingUser, string>>;
  readonly stop: () => Promise<void>;
}

/** A kube-apiserver. */
export async function realServer(): Promise<Served> {
  const cluster = await startCluster({ users: { controller: {}, reporter: {}, mallory: {} } });
  const tokens = Object.fromEntries(USERS.map((user) => [user, cluster.token(user)])) as Served['tokens'];
  return { url: cluster.url, ca: readFileSync(cluster.caFile, 'utf8'), tokens, stop: () => cluster.stop() };
}

/** An embedded API server, whose NetworkPolicies have a status. */
export async function embeddedServer(): Promise<Served> {
  const tokens = Object.fromEntries(USERS.map((user) => [user, `${user}-token`])) as Served['tokens'];
  const cluster = await EmbeddedCluster.open({
    networkPolicyStatus: true,
    tokens: USERS.map((username) => ({
      token: tokens[username],
      user: {
        username,
        uid: username,
        groups: ['system:authenticated', ...(username === 'admin' ? ['system:masters'] : [])],
      },
    })),
  });
  const tls = await createLoopbackCertificate();
  const gateway = new Gateway({ cluster, authenticator: cluster.authenticator, tls, drainMs: 0 });
  const { url } = await gateway.start({ port: 0 });
  const stop = async (): Promise<void> => {
    await gateway.stop();
    await cluster.close();
  };
  return { url, ca: tls.cert, tokens, stop };
}

/** Created by {@link ReportingLab.start}, without the controllers. */
export class ReportingLab implements AsyncDisposable {
  readonly url: string;
  readonly admin: KubernetesCluster;
  readonly folder: string;
  readonly #served: Served;
  readonly #controller: KubernetesCluster;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>[] = [];

  private constructor(served: Served, folder: string) {
    this.#served = served;
    this.url = served.url;
    this.folder = folder;
    this.admin = this.as('admin');
    this.#controller = this.as('controller');
  }

  static async start(served: Served): Promise<ReportingLab> {
    const folder = await mkdtemp(join(tmpdir(), 'portcullis-reporting-'));
    const lab = new ReportingLab(served, folder);
    await writeFile(lab.caFile, served.ca);
    for (const user of USERS) {
      await writeFile(lab.tokenFile(user), served.tokens[user], { mode: 0o600 });
      const { url: server, ca, tokens } = served;
      await writeFile(lab.kubeconfig(user), kubeconfigText({ server, ca, token: tokens[user], name: 'test' }), {
        mode: 0o600,
      });
    }
    await lab.#install();
    await lab.#startWebhook();
    return lab;
  }

  get caFile(): string {
    return join(this.folder, 'ca.crt');
  }

  tokenFile(user: ReportingUser): string {
    return join(this.folder, `${user}.token`);
  }

  kubeconfig(user: ReportingUser): string {
    return join(this.folder, `${user}.yaml`);
  }

  as(user: ReportingUser): KubernetesCluster {
    const { url: server, ca, tokens } = this.#served;
    return new KubernetesCluster({ server, ca, credentials: tokenCredentials(tokens[user]) });
  }

  /** Runs kubectl. @throws if it fails */
  async kubectl(user: ReportingUser, args: readonly string[], stdin = ''): Promise<string> {
    const { code, stdout, stderr } = await this.tryKubectl(user, args, stdin);
    if (code !== 0) {
      throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
    }
    return stdout;
  }

  async tryKubectl(user: ReportingUser, args: readonly string[], stdin = ''): Promise<CommandResult> {
    const options = { kubeconfig: this.kubeconfig(user), folder: this.folder, stdin };
    return await runClient(findBinary('kubectl') ?? 'kubectl', args, options);
  }

  async portcullis(user: ReportingUser, args: readonly string[]): Promise<CommandResult> {
    return await portcullis(args, { env: { KUBECONFIG: this.kubeconfig(user) } });
  }

  /** The environment of the example, and of the commands in the documentation. */
  reporterEnv(user: ReportingUser): Readonly<Record<string, string>> {
    return { KUBE_SERVER: this.url, KUBE_TOKEN_FILE: this.tokenFile(user), KUBE_CA_FILE: this.caFile };
  }

  startControllers(): void {
    const cluster = this.#controller;
    const caches = new SharedCaches({ cluster, log });
    const events = new EventRecorder({ cluster, component: CONTROLLER, log });
    const registry = new Registry();
    const controllers = new NetworkPolicyControllers({
      cluster,
      caches,
      events,
      registry,
      log,
      detectionIntervalMs: 50,
      unknownReporterMs: 2_000,
    });
    const { signal } = this.#stop;
    this.#running.push(caches.start(signal), events.start(signal), controllers.start(signal));
  }

  /** Kinds, and exactly the rights of an installation. */
  async #install(): Promise<void> {
    const definitions = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
    for (const one of NETWORK_POLICY_KINDS) {
      await this.admin.create(definitions, customResourceDefinition(one));
    }
    const events = { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] };
    await this.#grant(CONTROLLER, [
      ...OWN_KINDS_RULES,
      ...NETWORK_POLICY_READER_RULES,
      ...NETWORK_POLICY_STATUS_RULES,
      ...NETWORK_POLICY_SUBRESOURCE_RULES,
      events,
    ]);
    const role = userRoles(false).find(({ metadata }) => metadata.name === REPORTER_ROLE);
    await this.#grant(REPORTER_ROLE, (role?.['rules'] ?? []) as readonly AccessRule[], ['reporter', 'mallory']);
    await eventually(async () => {
      await this.#controller.list(NETWORK_POLICY_STATUSES);
      await this.#controller.list(NETWORK_POLICY_PROVIDERS);
    });
  }

  async #grant(name: string, rules: readonly AccessRule[], users: readonly string[] = [name]): Promise<void> {
    const metadata = { name };
    const [apiGroup = ''] = RBAC.split('/');
    await this.admin.create(knownKind(RBAC, 'ClusterRole'), { apiVersion: RBAC, kind: 'ClusterRole', metadata, rules });
    await this.admin.create(knownKind(RBAC, 'ClusterRoleBinding'), {
      apiVersion: RBAC,
      kind: 'ClusterRoleBinding',
      metadata,
      roleRef: { apiGroup, kind: 'ClusterRole', name },
      subjects: users.map((user) => ({ apiGroup, kind: 'User', name: user })),
    });
  }

  async #startWebhook(): Promise<void> {
    const pki = join(this.folder, 'pki');
    await mkdir(pki);
    const tls = await ensureLocalCertificates(pki);
    const cluster = this.#controller;
    const caches = new SharedCaches({ cluster, log });
    const webhook = new OwnKindsWebhook({
      cluster,
      caches,
      namespace: 'portcullis',
      host: '127.0.0.1',
      port: 0,
      apiServers: ['127.0.0.1'],
      tls,
      ca: readFileSync(tls.caFile, 'utf8'),
      controllerUser: CONTROLLER,
      guarded: [new ReportGuard(caches.cache(NETWORK_POLICY_PROVIDERS))],
      log,
    });
    const parts = [webhook.registration, caches, webhook];
    this.#running.push(...parts.map((part) => part.start(this.#stop.signal)));
    await Promise.all([webhook.ready, webhook.registration.ready]);
    // API servers call a new webhook some moments late.
    using mallory = this.as('mallory');
    await eventually(() => assert.rejects(mallory.create(NETWORK_POLICY_STATUSES, STRAY, { dryRun: true }), REFUSED));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await Promise.allSettled(this.#running);
    this.#controller.close();
    this.admin.close();
    await this.#served.stop();
    await rm(this.folder, { recursive: true, force: true });
  }
}
