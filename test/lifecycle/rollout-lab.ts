// A cluster with all parts of a rollout: an API server behind a proxy, two policy servers behind one address,
// controllers, and a module source. The processes of Portcullis run with the rights that they declare.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { kubeconfigText } from '../../src/apiserver/index.ts';
import { ApiError, type Cluster, ClusterError, KubernetesCluster, tokenCredentials } from '../../src/cluster/index.ts';
import {
  CONTROLLER_NAMESPACE_RULES,
  CONTROLLER_RULES,
  EXCEPTION_RULES,
} from '../../src/lifecycle/access-rules/index.ts';
import { NETWORK_POLICY_STATUS_RULES } from '../../src/network-policy/access-rules/index.ts';
import {
  CLUSTER_ADMISSION_POLICIES,
  customResourceDefinition,
  type JsonObject,
  kubernetesKind,
  type KubernetesObject,
  NETWORK_POLICY_KINDS,
  type ObjectKey,
  OWN_KINDS,
  POLICY_REVISIONS,
  type PolicyRevision,
  type AdmissionPolicyStatus,
  type ResourceType,
} from '../../src/resources/index.ts';
import type { ControlTls } from '../../src/control/index.ts';
import { REPLICA_CLUSTER_RULES, REPLICA_RULES } from '../../src/control/access-rules/index.ts';
import { ensureLocalCertificates, type LocalCertificates } from '../../src/control/certificates/index.ts';
import { eventually } from '../cluster/eventually.ts';
import { example, moduleBytes } from '../server/harness.ts';
import { ControlCertificates } from '../../src/control/testing/index.ts';
import { Balancer } from './rollout-lab-balancer.ts';
import { LabProcess, type LogEntry } from './rollout-lab-process.ts';
import { ApiProxy } from './rollout-lab-proxy.ts';
import { ModuleWeb, Road } from './rollout-lab-sources.ts';
import type { LabTarget, LabUser } from './rollout-lab-target.ts';

/** The namespace of Portcullis. */
export const NAMESPACE = 'portcullis';
/** Time limit of waits, which take a second or two; ten times as long on a busy machine. Milliseconds. */
const WAIT_MS = 45_000;

/** A policy, as scenarios read it. */
export interface Policy extends KubernetesObject {
  readonly spec: Readonly<Record<string, unknown>>;
  readonly status?: AdmissionPolicyStatus;
}

export const POLICIES = CLUSTER_ADMISSION_POLICIES as ResourceType<Policy>;

/** The type of a builtin kind. */
export function kind(apiVersion: string, name: string): ResourceType {
  const type = kubernetesKind(apiVersion, name) ?? OWN_KINDS.find((own) => own.kind === name);
  assert.ok(type, `no kind ${name}`);
  return type;
}

/** A policy server of the lab. */
export interface LabReplica {
  readonly name: string;
  readonly road: Road;
  /** Its data: the module cache and the record of serving revisions. */
  readonly folder: string;
  process: LabProcess;
  /** Base URL of its admission port. */
  admission: string;
}

/** Options of a scenario. */
export interface LabOptions {
  /** Default: 2. */
  readonly replicas?: number;
  /** Default: 1. Several controllers elect a leader. */
  readonly controllers?: number;
  /** See {@link RolloutLab.signal}. */
  readonly signal?: AbortSignal;
}

export class RolloutLab implements AsyncDisposable {
  readonly target: LabTarget;
  readonly proxy: ApiProxy;
  readonly web: ModuleWeb;
  readonly balancer: Balancer;
  readonly folder: string;
  readonly certificates: LocalCertificates;
  /** Of control ports. */
  readonly control: ControlCertificates;
  /** A client of the cluster's owner, without the proxy's failures. */
  readonly cluster: Cluster;
  readonly replicas: LabReplica[] = [];
  readonly controllers: LabProcess[] = [];
  /** Folders of the controllers with copies of modules. */
  readonly copies: string[] = [];
  /** Of the running test: waits and streams end with it, also when it has timed out and nothing else ends its function. */
  signal: AbortSignal = new AbortController().signal;
  readonly #stack: AsyncDisposableStack;
  readonly #clients = new Map<LabUser, KubernetesCluster>();
  #started = 0;

  private constructor(parts: {
    target: LabTarget;
    proxy: ApiProxy;
    web: ModuleWeb;
    balancer: Balancer;
    folder: string;
    certificates: LocalCertificates;
    control: ControlCertificates;
    stack: AsyncDisposableStack;
  }) {
    this.target = parts.target;
    this.proxy = parts.proxy;
    this.web = parts.web;
    this.balancer = parts.balancer;
    this.folder = parts.folder;
    this.certificates = parts.certificates;
    this.control = parts.control;
    this.#stack = parts.stack;
    this.cluster = this.as('admin');
  }

  static async start(open: () => Promise<LabTarget>, options: LabOptions = {}): Promise<RolloutLab> {
    const stack = new AsyncDisposableStack();
    try {
      const folder = await mkdtemp(join(tmpdir(), 'portcullis-rollout-lab-'));
      stack.defer(() => rm(folder, { recursive: true, force: true }));
      const target = stack.use(await open());
      const users = new Map(Object.entries(target.tokens).map(([user, token]) => [token, user]));
      const proxy = stack.use(await ApiProxy.start(target.upstream, users));
      const web = stack.use(await ModuleWeb.start());
      const balancer = stack.use(await Balancer.start());
      const certificates = await ensureLocalCertificates(join(folder, 'pki'));
      const control = await ControlCertificates.create(join(folder, 'control-pki'));
      const lab = new RolloutLab({ target, proxy, web, balancer, folder, certificates, control, stack });
      lab.signal = options.signal ?? lab.signal;
      stack.defer(() => lab.#clients.forEach((client) => client.close()));
      stack.defer(() => lab.endProcesses('SIGKILL'));
      await lab.#install();
      await Promise.all(Array.from({ length: options.replicas ?? 2 }, () => lab.addReplica()));
      const controllers = options.controllers ?? 1;
      await Promise.all(Array.from({ length: controllers }, () => lab.addController(controllers > 1)));
      return lab;
    } catch (error) {
      await stack.disposeAsync();
      throw error;
    }
  }

  /** The cluster as a user sees it. */
  as(user: LabUser): KubernetesCluster {
    let client = this.#clients.get(user);
    if (client === undefined) {
      const credentials = tokenCredentials(this.target.tokens[user]);
      client = new KubernetesCluster({ server: this.proxy.url, ca: this.proxy.ca, credentials });
      this.#clients.set(user, client);
    }
    return client;
  }

  /** A kubeconfig of a user, for programs. */
  async kubeconfig(user: LabUser): Promise<string> {
    const file = join(this.folder, `${user}.kubeconfig`);
    const { url: server, ca } = this.proxy;
    await writeFile(file, kubeconfigText({ server, ca, token: this.target.tokens[user] }), { mode: 0o600 });
    return file;
  }

  /** Starts another policy server, and waits until it responds. */
  async addReplica(): Promise<LabReplica> {
    const name = `replica-${(this.#started += 1)}`;
    const road = this.#stack.use(await Road.start());
    const folder = join(this.folder, name);
    await mkdir(folder);
    await writeFile(join(folder, 'sources.yml'), `proxies: {http_proxy: '${road.url}'}\n`);
    const process = await this.#serve(name, folder);
    const replica = { name, road, folder, process, admission: '' };
    this.replicas.push(replica);
    await this.#answers(replica);
    return replica;
  }

  /** Starts a stopped policy server again. */
  async restartReplica(replica: LabReplica): Promise<void> {
    replica.process = await this.#serve(replica.name, replica.folder);
    await this.#answers(replica);
  }

  /** Starts a controller, and waits until it leads, or until it waits for leadership. */
  async addController(isElected = false, more: readonly string[] = []): Promise<LabProcess> {
    return await this.startController(`controller-${(this.#started += 1)}`, isElected, more);
  }

  /** Starts a controller with the copies of an earlier one of this name. */
  async startController(name: string, isElected: boolean, more: readonly string[] = []): Promise<LabProcess> {
    const { certificates } = this;
    const copies = join(this.folder, name);
    if (!this.copies.includes(copies)) {
      this.copies.push(copies);
    }
    const process = new LabProcess(
      name,
      [
        'controller',
        isElected ? '--leader-elect' : '--no-leader-elect',
        // The cluster of the lab has no kinds of these, and the controller no rights on them.
        '--no-governance',
        '--no-network-policy-status',
        // Nor does its API server have the objects of an installation.
        '--no-exempt-guard',
        ...flags({
          kubeconfig: await this.kubeconfig('controller'),
          namespace: NAMESPACE,
          'lease-duration': '3s',
          'policy-server-url': `https://localhost:${this.balancer.port}`,
          'policy-server-ca-file': certificates.caFile,
          ...controlFlags(await this.control.ofController()),
          'module-copies-dir': copies,
          'operations-port': '0',
        }),
        ...more,
      ],
      this.folder,
    );
    this.controllers.push(process);
    await this.logged(process, 'controller ready');
    return process;
  }

  async endProcesses(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const running = [...this.controllers, ...this.replicas.map(({ process }) => process)];
    await Promise.all(running.map((process) => process.end(signal)));
  }

  /** Restarts a crashed API server. */
  async revive(): Promise<void> {
    await this.target.revive();
    this.proxy.setUpstream(this.target.upstream);
    await this.eventually(
      () => this.cluster.get(kind('v1', 'Namespace'), { name: NAMESPACE }),
      () => 'the API server to answer',
    );
  }

  create<T extends KubernetesObject>(object: T): Promise<T> {
    return this.cluster.create<T>(kind(object.apiVersion, object.kind) as ResourceType<T>, object);
  }

  /** Creates a namespace with the label `scenario` of its name. */
  async namespace(name: string): Promise<void> {
    await this.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: { scenario: name } } });
  }

  merge(name: string, body: JsonObject): Promise<Policy> {
    return this.cluster.patch(POLICIES, { name }, { type: 'merge', body });
  }

  change(name: string, spec: JsonObject): Promise<Policy> {
    return this.merge(name, { spec });
  }

  annotate(name: string, annotations: Readonly<Record<string, string | null>>): Promise<Policy> {
    return this.merge(name, { metadata: { annotations: { ...annotations } } });
  }

  policy(name: string): Promise<Policy> {
    return this.cluster.get(POLICIES, { name });
  }

  /** The revisions of a cluster-wide policy, oldest first. */
  async revisions(name: string): Promise<readonly PolicyRevision[]> {
    const { items } = await this.cluster.list(POLICY_REVISIONS, { namespace: NAMESPACE });
    return items
      .filter(({ spec }) => spec.policy.name === name && spec.policy.namespace === undefined)
      .toSorted((a, b) => a.spec.revision - b.spec.revision);
  }

  /** Waits until the status of a policy, for its current spec, matches. */
  async reaches(
    name: string,
    phase: string,
    isSo: (status: AdmissionPolicyStatus) => boolean = () => true,
  ): Promise<Policy> {
    let last: Policy | undefined;
    return await this.eventually(
      async () => {
        last = await this.policy(name);
        const { status, metadata } = last;
        const isDone = status?.phase === phase && status.observedGeneration === metadata.generation && isSo(status);
        assert.ok(isDone);
        return last;
      },
      () =>
        `policy ${name} to be ${phase}, last ${JSON.stringify(last?.status)} of generation ${last?.metadata.generation}`,
    );
  }

  /** Retries until it does not throw. On a timeout, the error contains the last failure and the logs of processes. */
  async eventually<T>(attempt: () => Promise<T>, what: () => string): Promise<T> {
    const { signal } = this;
    try {
      return await eventually(attempt, { timeoutMs: WAIT_MS, intervalMs: 10, signal });
    } catch (error) {
      const tails = [...this.controllers, ...this.replicas.map(({ process }) => process)].map(({ tail }) => tail);
      throw new Error(`waited for ${what()}\n${tails.join('\n')}`, { cause: error });
    }
  }

  /** Resolves with an event, in the same time, and fails likewise. */
  async event<T>(event: Promise<T>, what: string): Promise<T> {
    let outcome: PromiseSettledResult<T> | undefined;
    void Promise.allSettled([event]).then(([settled]) => (outcome = settled));
    const settled = await this.eventually(
      async () => outcome ?? assert.fail('not yet'),
      () => what,
    );
    if (settled.status === 'rejected') {
      throw settled.reason;
    }
    return settled.value;
  }

  /** Resolves with the first log line of a process with this message. */
  logged(process: LabProcess, message: string): Promise<LogEntry> {
    return this.event(process.logs(message), `${process.name} to log "${message}"`);
  }

  /** The rejection of a config map in a namespace, by a dry run. */
  async refusal(namespace: string, labels: Readonly<Record<string, string>> = {}): Promise<string | undefined> {
    const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'probe-', namespace, labels } };
    return await this.rejectionOf(map);
  }

  /** The rejection of an object, by a dry run. */
  async rejectionOf(object: KubernetesObject): Promise<string | undefined> {
    try {
      await this.cluster.create(kind(object.apiVersion, object.kind), object, { dryRun: true });
      return undefined;
    } catch (error) {
      if (error instanceof ApiError || error instanceof ClusterError) {
        return error.message;
      }
      throw error;
    }
  }

  /** A module on the web server: the example that requires labels, under its own name. */
  async module(name: string): Promise<string> {
    return this.web.put(name, { kind: 'serve', bytes: await moduleBytes(example('required-labels')) });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }

  async #serve(name: string, folder: string): Promise<LabProcess> {
    const { certificates } = this;
    return new LabProcess(
      name,
      [
        'serve',
        ...flags({
          'policy-server': 'default',
          kubeconfig: await this.kubeconfig('replica'),
          namespace: NAMESPACE,
          'replica-name': name,
          addr: '127.0.0.1',
          port: '0',
          'readiness-probe-port': '0',
          workers: '1',
          'cert-file': certificates.certFile,
          'key-file': certificates.keyFile,
          'control-addr': '127.0.0.1',
          'control-port': '0',
          'control-advertise': '127.0.0.1',
          ...controlFlags(await this.control.ofPolicyServer('default')),
          'policies-download-dir': join(folder, 'data'),
          'sources-path': join(folder, 'sources.yml'),
        }),
      ],
      folder,
    );
  }

  async #answers(replica: LabReplica): Promise<void> {
    const { admission } = await this.logged(replica.process, 'policy server ready');
    replica.admission = String(admission);
    this.balance();
  }

  /** Sends connections to running replicas. */
  balance(): void {
    this.balancer.backends = this.replicas
      .filter(({ process, admission }) => process.isRunning && admission !== '')
      .map(({ admission }) => Number(new URL(admission).port));
  }

  get ca(): string {
    return readFileSync(this.certificates.caFile, 'utf8');
  }

  async #install(): Promise<void> {
    for (const own of [...OWN_KINDS, ...NETWORK_POLICY_KINDS]) {
      await this.create(customResourceDefinition(own));
    }
    await this.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
    // Also where it writes no status of NetworkPolicies, a controller guards who does.
    await this.grant('controller', [...CONTROLLER_RULES, ...EXCEPTION_RULES, ...NETWORK_POLICY_STATUS_RULES]);
    await this.grant('controller', CONTROLLER_NAMESPACE_RULES, NAMESPACE);
    await this.grant('replica', REPLICA_CLUSTER_RULES);
    await this.grant('replica', REPLICA_RULES, NAMESPACE);
    const server = {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'PolicyServer',
      metadata: { name: 'default' },
      spec: { image: 'portcullis', replicas: 2 },
    };
    await this.eventually(
      () => this.create(server),
      () => 'the kinds to be served',
    );
  }

  /** Grants a user rights in the cluster, or in one namespace. */
  async grant(user: LabUser, rules: readonly object[], namespace?: string, name = `lab-${user}`): Promise<void> {
    const prefix = namespace === undefined ? 'Cluster' : '';
    const metadata: ObjectKey = { name, ...(namespace === undefined ? {} : { namespace }) };
    const apiVersion = 'rbac.authorization.k8s.io/v1';
    await this.create({ apiVersion, kind: `${prefix}Role`, metadata, rules });
    await this.create({
      apiVersion,
      kind: `${prefix}RoleBinding`,
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: `${prefix}Role`, name: metadata.name },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
    });
  }
}

function controlFlags({ certFile, keyFile, caFile }: ControlTls): Readonly<Record<string, string>> {
  return { 'control-cert-file': certFile, 'control-key-file': keyFile, 'control-ca-file': caFile };
}

/** `--name value` for each. */
function flags(values: Readonly<Record<string, string>>): string[] {
  return Object.entries(values).flatMap(([name, value]) => [`--${name}`, value]);
}

/** A policy that requires a label on config maps of a scenario's namespace; a rejection names the label. */
export function requiresLabel(
  name: string,
  module: string,
  label: string,
  rest: Readonly<Record<string, unknown>> = {},
): Policy {
  return {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'ClusterAdmissionPolicy',
    metadata: { name },
    spec: {
      module,
      settings: { labels: [label] },
      mutating: false,
      rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }],
      namespaceSelector: { matchLabels: { scenario: name } },
      ...rest,
    },
  };
}

/** The label in a rejection. */
export function labelOf(message: string | undefined): string | undefined {
  return /has no label "([^"]*)"/.exec(message ?? '')?.[1];
}
