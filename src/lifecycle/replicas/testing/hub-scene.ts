// A hub on an embedded cluster, with test replicas.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { EmbeddedCluster } from '../../../apiserver/index.ts';
import type { Cluster } from '../../../cluster/index.ts';
import {
  customResourceDefinition,
  knownKind,
  OWN_KINDS,
  POLICY_SERVER_REPLICAS,
  POLICY_SERVERS,
} from '../../../resources/index.ts';
import type { KubernetesObject, OwnerReference } from '../../../resources/index.ts';
import { SharedCaches } from '../../../runtime/index.ts';
import { ensureLocalCertificates } from '../../../control/certificates/index.ts';
import type { ControlTls } from '../../../control/index.ts';
import type { KnownReplica, ReplicaChange } from '../replica-directory.ts';
import { ReplicaHub } from '../replica-hub.ts';
import type { ReplicaTiming } from '../replica-timing.ts';
import { TestReplica } from './test-replica.ts';
import type { TestReplicaOptions } from './test-replica.ts';

export const NAMESPACE = 'portcullis';

/** A tenth of the real times, so that tests are quick. */
export const TEST_TIMING: ReplicaTiming = {
  tickMs: 20,
  silenceMs: 160,
  connectingMs: 300,
  returnMs: 100,
  holdMs: 20,
  holdCapMs: 80,
  steadyMs: 5_000,
  retryMs: 5,
  retryCapMs: 30,
  stableMs: 20,
  ownerMs: 10,
  ownerCapMs: 30,
  unreadyMs: 30,
  clockMs: 100,
};

/** Certificates of control ports in a temporary folder. */
export class TestCertificates implements AsyncDisposable {
  readonly folder: string;
  /** Certificates of both sides. */
  readonly control: ControlTls;
  /** A certificate of the same CA for another name. */
  readonly otherName: ControlTls;

  private constructor(folder: string, control: ControlTls, otherName: ControlTls) {
    this.folder = folder;
    this.control = control;
    this.otherName = otherName;
  }

  static async create(): Promise<TestCertificates> {
    const folder = await mkdtemp(join(tmpdir(), 'portcullis-hub-'));
    const { caFile, certFile, keyFile, controlCertFile, controlKeyFile } = await ensureLocalCertificates(folder);
    const control = { certFile: controlCertFile, keyFile: controlKeyFile, caFile };
    return new TestCertificates(folder, control, { certFile, keyFile, caFile });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** A cluster with our kinds. */
export async function openCluster(): Promise<EmbeddedCluster> {
  const cluster = await EmbeddedCluster.open();
  const crds = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
  const namespaces = knownKind('v1', 'Namespace');
  for (const kind of OWN_KINDS.filter(({ kind: name }) => name.startsWith('PolicyServer'))) {
    await cluster.admin.create(crds, customResourceDefinition(kind));
  }
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } };
  await cluster.admin.create(namespaces, namespace);
  return cluster;
}

export interface HubSceneOptions {
  /** Default: the certificates of replicas. */
  readonly tls?: ControlTls;
  readonly through?: (cluster: Cluster) => Cluster;
  readonly timing?: Partial<ReplicaTiming>;
}

export class HubScene implements AsyncDisposable {
  readonly cluster: EmbeddedCluster;
  readonly hub: ReplicaHub;
  readonly caches: SharedCaches;
  readonly registry = new Registry();
  /** All changes so far. */
  readonly changes: ReplicaChange[] = [];
  readonly lines: { msg: string; reason?: string; replica?: string }[] = [];
  readonly log = pino(
    { level: 'debug', base: null, timestamp: false },
    { write: (line) => void this.lines.push(JSON.parse(line) as { msg: string }) },
  );
  readonly #tls: ControlTls;
  readonly #replicas: TestReplica[] = [];
  readonly #stop = new AbortController();
  readonly #running: Promise<void>[] = [];
  #leadership = new AbortController();

  private constructor(cluster: EmbeddedCluster, replicaTls: ControlTls, options: HubSceneOptions) {
    const client = options.through?.(cluster.admin) ?? cluster.admin;
    this.cluster = cluster;
    this.#tls = replicaTls;
    this.caches = new SharedCaches({ cluster: client, log: this.log });
    this.hub = new ReplicaHub({
      cluster: client,
      caches: this.caches,
      namespace: NAMESPACE,
      tls: options.tls ?? replicaTls,
      log: this.log,
      registry: this.registry,
      timing: { ...TEST_TIMING, ...options.timing },
    });
    this.hub.subscribe((change) => this.changes.push(change));
  }

  static async open(certificates: TestCertificates, options: HubSceneOptions = {}): Promise<HubScene> {
    return new HubScene(await openCluster(), certificates.control, options);
  }

  /** Starts leading. */
  async lead(): Promise<void> {
    if (this.#running.length === 0) {
      this.#running.push(this.caches.start(this.#stop.signal));
    }
    this.#leadership = new AbortController();
    this.#running.push(this.hub.start(this.#leadership.signal));
    await this.hub.ready;
  }

  /** Stops leading. */
  async resign(): Promise<void> {
    this.#leadership.abort();
    await this.#running.pop();
  }

  /** Starts a replica, and writes its object. */
  async replica(name: string, options: Partial<TestReplicaOptions> & ObjectOptions = {}): Promise<TestReplica> {
    const replica = await TestReplica.start({ tls: this.#tls, ...options, name });
    this.#replicas.push(replica);
    await this.object(name, { controlAddress: replica.address, ...options });
    return replica;
  }

  /** Writes the object of a replica. */
  async object(name: string, options: ObjectOptions & { readonly controlAddress?: string }): Promise<void> {
    const { policyServer = 'default', controlAddress, owner } = options;
    await this.cluster.admin.create<KubernetesObject & { spec: unknown }>(POLICY_SERVER_REPLICAS, {
      apiVersion: 'portcullis.dev/v1',
      kind: 'PolicyServerReplica',
      metadata: { name, namespace: NAMESPACE, ...(owner === undefined ? {} : { ownerReferences: [owner] }) },
      spec: { policyServer, ...(controlAddress === undefined ? {} : { controlAddress }) },
    });
  }

  async policyServer(name: string, replicas: number): Promise<void> {
    await this.cluster.admin.create<KubernetesObject & { spec: unknown }>(POLICY_SERVERS, {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'PolicyServer',
      metadata: { name },
      spec: { image: 'portcullis', replicas },
    });
  }

  async remove(name: string): Promise<void> {
    await this.cluster.admin.delete(POLICY_SERVER_REPLICAS, { namespace: NAMESPACE, name });
  }

  find(name: string): KnownReplica | undefined {
    return this.hub.replicas('default')?.find((one) => one.name === name);
  }

  /** `name=state` of each replica; undefined until they are known. */
  states(policyServer = 'default'): readonly string[] | undefined {
    return this.hub.replicas(policyServer)?.map(({ name, state }) => `${name}=${state}`);
  }

  /** Waits until replicas have these states. */
  async see(...expected: readonly string[]): Promise<void> {
    await eventually(() => this.states()?.join(' ') === expected.join(' '));
  }

  /** Reasons of losses. */
  losses(): readonly string[] {
    return this.lines.filter(({ msg }) => msg === 'replica lost').map(({ reason = '' }) => reason);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#leadership.abort();
    this.#stop.abort();
    await Promise.all(this.#running);
    await Promise.all(this.#replicas.map((replica) => replica[Symbol.asyncDispose]()));
    await this.cluster[Symbol.asyncDispose]();
  }
}

interface ObjectOptions {
  readonly policyServer?: string;
  readonly owner?: OwnerReference;
}

/** Waits until a condition holds. The test's own time limit applies. */
export async function eventually(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) {
    await sleep(2);
  }
}
