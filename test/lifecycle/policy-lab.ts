// An embedded cluster, a policy server that it calls, and the controllers of both.
import { readFileSync } from 'node:fs';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import type { EmbeddedCluster, UserInfo } from '../../src/apiserver/index.ts';
import { ApiError, type Cluster } from '../../src/cluster/index.ts';
import {
  DEFAULT_ROLLOUT_SETTINGS,
  type KnownReplica,
  LifecycleControllers,
  PolicyServerController,
  type ReplicaChange,
  type ReplicaDirectory,
  ReplicaHub,
  WritePace,
} from '../../src/lifecycle/index.ts';
import { CONTROLLER_NAMESPACE_RULES, CONTROLLER_RULES } from '../../src/lifecycle/access-rules/index.ts';
import type { Verification } from '../../src/modules/index.ts';
import { DEFAULT_SOURCES, type SourcesConfig } from '../../src/modules/sources/index.ts';
import {
  keyOf,
  kubernetesKind,
  type KubernetesObject,
  type ObjectKey,
  OWN_KINDS,
  POLICY_SERVERS,
  type ResourceType,
  type MonitoredStatus,
  type PolicyIssue,
  type AdmissionPolicyStatus,
  type RefreshedStatus,
} from '../../src/resources/index.ts';
import { EventRecorder, EVENTS, Runtime, RuntimeMetrics, SharedCaches } from '../../src/runtime/index.ts';
import { type TestServer, until } from '../server/harness.ts';
import { folderLike, NAMESPACE, openCluster, startReplica } from '../server/replica-lab.ts';

/** The fields of a policy that tests read. */
export interface Policy extends KubernetesObject {
  readonly spec: unknown;
  readonly status?: {
    readonly phase: string;
    readonly reason: string;
    readonly message: string;
    readonly policyStatus: string;
    readonly observedGeneration: number;
    readonly desiredRevision: number;
    readonly readyReplicas: number;
    readonly conditions: readonly { readonly type: string; readonly status: string }[];
    readonly monitored?: MonitoredStatus;
    readonly refreshed?: RefreshedStatus;
    readonly issues?: readonly PolicyIssue[];
    readonly serving?: AdmissionPolicyStatus['serving'];
  };
}

/** The fields of a webhook configuration that tests read. */
export interface WebhookConfiguration extends KubernetesObject {
  readonly webhooks: readonly Readonly<Record<string, unknown>>[];
}

export function kind<T extends KubernetesObject = KubernetesObject>(apiVersion: string, name: string): ResourceType<T> {
  const type = kubernetesKind(apiVersion, name) ?? OWN_KINDS.find((own) => own.kind === name);
  if (type === undefined) {
    throw new Error(`no kind ${name}`);
  }
  return type as ResourceType<T>;
}

export const PODS = kind('v1', 'Pod');
export const VALIDATING = kind<WebhookConfiguration>(
  'admissionregistration.k8s.io/v1',
  'ValidatingWebhookConfiguration',
);
export const MUTATING = kind<WebhookConfiguration>('admissionregistration.k8s.io/v1', 'MutatingWebhookConfiguration');

/** Webhook configurations are written as in production, but twenty times as fast. */
const PACE_FACTOR = 0.05;

const WRITES: ReadonlySet<string | symbol> = new Set(['create', 'update', 'patch', 'delete', 'deleteCollection']);

const CONTROLLER: UserInfo = {
  username: 'system:serviceaccount:portcullis:controller',
  groups: ['system:serviceaccounts', 'system:authenticated'],
};

/** The replicas of a hub. Counts reads of each policy's reports, since every reconciliation reads them. */
class CountedReplicas implements ReplicaDirectory {
  readonly reads = new Map<string, number>();
  readonly #hub: ReplicaHub;
  readonly #listeners = new Set<(change: ReplicaChange) => void>();

  constructor(hub: ReplicaHub) {
    this.#hub = hub;
  }

  replicas(policyServer: string): readonly KnownReplica[] | undefined {
    return this.#hub.replicas(policyServer)?.map((replica) => ({
      name: replica.name,
      policyServer: replica.policyServer,
      state: replica.state,
      reports: (policy) => {
        this.reads.set(policy, (this.reads.get(policy) ?? 0) + 1);
        return replica.reports(policy);
      },
    }));
  }

  get monitored(): ReplicaDirectory['monitored'] {
    return this.#hub.monitored;
  }

  subscribe(listener: (change: ReplicaChange) => void): () => void {
    this.#listeners.add(listener);
    const unsubscribe = this.#hub.subscribe(listener);
    return () => {
      this.#listeners.delete(listener);
      unsubscribe();
    };
  }

  prevalidate(...parameters: Parameters<ReplicaDirectory['prevalidate']>): ReturnType<ReplicaDirectory['prevalidate']> {
    return this.#hub.prevalidate(...parameters);
  }

  changed(policy: string, policyServer = 'default'): void {
    for (const listener of this.#listeners) {
      listener({ policyServer, policies: [policy] });
    }
  }
}

export interface PolicyLabOptions {
  /** Whether a controller writes the status of PolicyServers. Default: false. */
  readonly policyServerStatus?: boolean;
  /** Settings of module sources. Default: none, but that namespaced policies may use all modules. */
  readonly sources?: SourcesConfig;
  /** What modules must be signed by. Default: nothing. */
  readonly verification?: Verification;
  /** Memory that policies may hold. Default: a part of the memory limit of the process. */
  readonly policyMemoryBytes?: number;
  /** Largest module of a policy of the cluster. Default: that of the module store. */
  readonly maxModuleBytes?: number;
  /** The account that policies read with. Default: the administrator. */
  readonly reader?: UserInfo;
  /** Intervals of reports and of status writes on policies in monitor mode. Milliseconds. */
  readonly monitoredReportMs?: number;
  readonly monitoredIntervalMs?: number;
}

/** Created by {@link PolicyLab.start}. */
export class PolicyLab implements AsyncDisposable {
  readonly cluster: EmbeddedCluster;
  readonly server: TestServer;
  /** Replicas of further PolicyServers, by their names. */
  readonly #others = new Map<string, TestServer>();
  readonly #registry: Registry;
  readonly #metrics: RuntimeMetrics;
  readonly #options: PolicyLabOptions;
  /** The error of a write by controllers that the API server refuses. Default: it refuses none. */
  refusal: (verb: string, type: ResourceType) => ApiError | undefined = () => undefined;
  #replicas: CountedReplicas | undefined;
  #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #writes = 0;

  private constructor(cluster: EmbeddedCluster, server: TestServer, registry: Registry, options: PolicyLabOptions) {
    this.#options = options;
    this.cluster = cluster;
    this.server = server;
    this.#registry = registry;
    this.#metrics = new RuntimeMetrics(registry);
  }

  static async start(options: PolicyLabOptions = {}): Promise<PolicyLab> {
    const cluster = await openCluster();
    await grantAccess(cluster);
    await cluster.admin.create(POLICY_SERVERS, {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'PolicyServer',
      metadata: { name: 'default' },
      spec: { image: 'portcullis', replicas: 1 },
    });
    const registry = new Registry();
    const server = await startReplica({
      cluster: cluster.admin,
      workers: 1,
      registry,
      sources: options.sources ?? { ...DEFAULT_SOURCES, tenantModules: ['*'] },
      ...(options.reader === undefined ? {} : { policyCluster: cluster.as(options.reader) }),
      ...(options.verification === undefined ? {} : { verification: options.verification }),
      ...(options.policyMemoryBytes === undefined ? {} : { policyMemoryBytes: options.policyMemoryBytes }),
      ...(options.maxModuleBytes === undefined ? {} : { maxModuleBytes: options.maxModuleBytes }),
      ...(options.monitoredReportMs === undefined ? {} : { monitoredReportMs: options.monitoredReportMs }),
      // Namespaced policies may only use modules below this folder.
      modulesUrl: new URL('../../examples/', import.meta.url),
    });
    const lab = new PolicyLab(cluster, server, registry, options);
    await lab.startControllers();
    return lab;
  }

  /** Starts controllers with their own access rights. */
  async startControllers(monitoredIntervalMs = this.#options.monitoredIntervalMs): Promise<void> {
    const log = pino({ level: 'silent' });
    const cluster = this.#counted(this.cluster.as(CONTROLLER));
    const { folder } = this.server;
    const { controlCertFile: certFile, controlKeyFile: keyFile, caFile } = folder.certificates;
    const metrics = this.#metrics;
    const caches = new SharedCaches({ cluster, log, metrics });
    const events = new EventRecorder({ cluster, component: 'portcullis', log, metrics });
    const hub = new ReplicaHub({ cluster, caches, namespace: NAMESPACE, tls: { certFile, keyFile, caFile }, log });
    this.#replicas = new CountedReplicas(hub);
    for (const { name } of this.#registry.getMetricsAsArray()) {
      if (/^portcullis_(policies|policy_issues|rollout|webhook)/.test(name)) {
        this.#registry.removeSingleMetric(name);
      }
    }
    const controllers = new LifecycleControllers({
      cluster,
      caches,
      namespace: NAMESPACE,
      settings: DEFAULT_ROLLOUT_SETTINGS,
      replicas: this.#replicas,
      target: (policyServer) => {
        const server = policyServer === 'default' ? this.server : this.#others.get(policyServer);
        return (
          server && {
            url: server.addresses.admission.replace('127.0.0.1', 'localhost'),
            ca: readFileSync(caFile, 'utf8'),
          }
        );
      },
      pace: () => new WritePace(PACE_FACTOR),
      ...(monitoredIntervalMs === undefined ? {} : { monitoredIntervalMs }),
      events,
      log,
      metrics,
      registry: this.#registry,
    });
    const servers =
      this.#options.policyServerStatus === true
        ? [new PolicyServerController({ cluster, caches, replicas: this.#replicas, log })]
        : [];
    this.#stop = new AbortController();
    this.#running = new Runtime({ log })
      .add('cache', caches)
      .add('leader', events, hub, controllers, ...servers)
      .run(this.#stop.signal);
    await Promise.race([controllers.ready, this.#running]);
    await until(() => hub.replicas('default')?.[0]?.state === 'connected');
  }

  /** Starts the replica of another PolicyServer, which the lab stops. */
  async startOther(policyServer: string): Promise<TestServer> {
    const folder = await folderLike(this.server.folder);
    const { admin: cluster } = this.cluster;
    const server = await startReplica({ cluster, folder, workers: 1, name: `${policyServer}-0`, policyServer });
    this.#others.set(policyServer, server);
    return server;
  }

  async stopControllers(): Promise<void> {
    this.#replicas = undefined;
    this.#stop.abort();
    await this.#running;
  }

  async create<T extends KubernetesObject>(object: T): Promise<T> {
    return await this.cluster.admin.create(kind<T>(object.apiVersion, object.kind), object);
  }

  async merge(type: ResourceType, key: ObjectKey, body: Readonly<Record<string, unknown>>): Promise<void> {
    await this.cluster.admin.patch(type, key, { type: 'merge', body: body as never });
  }

  /** An object of the cluster; undefined if it does not exist. */
  async find<T extends KubernetesObject>(type: ResourceType<T>, key: ObjectKey): Promise<T | undefined> {
    try {
      return await this.cluster.admin.get(type, key);
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) {
        return undefined;
      }
      throw error;
    }
  }

  /** Waits until a condition holds for an object, or for undefined if it does not exist. */
  async sees<T extends KubernetesObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    isSo: (object: T | undefined) => boolean,
  ): Promise<T | undefined> {
    let object: T | undefined;
    await until(
      async () => isSo((object = await this.find(type, key))),
      () => `${type.kind} ${key.name} to be as expected, last ${JSON.stringify(object, null, 1)}`,
    );
    return object;
  }

  /** Waits until the status of a policy has a phase for the current generation. */
  async reaches({ apiVersion, kind: name, metadata }: KubernetesObject, phase: string): Promise<Policy> {
    const isThere = (policy: Policy | undefined): boolean =>
      policy?.status?.phase === phase && policy.status.observedGeneration === policy.metadata.generation;
    const policy = await this.sees(kind<Policy>(apiVersion, name), keyOf({ metadata } as KubernetesObject), isThere);
    return policy as Policy;
  }

  /** Waits for one more complete reconciliation of a policy. */
  async reconciles(id: string): Promise<void> {
    // A policy is never reconciled twice at once: when the second one begins, the first one has ended.
    for (const time of ['a reconciliation', 'another reconciliation']) {
      const reads = this.#replicas?.reads.get(id) ?? 0;
      this.#replicas?.changed(id);
      await until(
        () => (this.#replicas?.reads.get(id) ?? 0) > reads,
        () => `${time} of ${id}`,
      );
    }
  }

  /** Has a replica of a PolicyServer report on a policy. @returns how often its reports were read so far */
  reportFrom(policyServer: string, id: string): number {
    this.#replicas?.changed(id, policyServer);
    return this.#replicas?.reads.get(id) ?? 0;
  }

  /** What replicas counted in monitor mode and no status contains yet: the sum of their counts. */
  reported(policy: string): number {
    const counts = this.#replicas?.monitored.of(policy) ?? [];
    return counts.reduce((sum, { count }) => sum + count, 0);
  }

  /** Waits until the controllers have stopped writing. @returns the number of their writes so far */
  async quiet(): Promise<number> {
    let last = -1;
    let since = 0;
    await until(
      () => {
        since = this.#writes === last ? since : performance.now();
        last = this.#writes;
        return performance.now() - since > 150;
      },
      () => 'the controllers to be quiet',
    );
    return last;
  }

  #counted(cluster: Cluster): Cluster {
    return new Proxy(cluster, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        return typeof member === 'function'
          ? (...parameters: unknown[]): unknown => {
              const isDryRun = parameters.some((one) => (one as { dryRun?: boolean } | undefined)?.dryRun === true);
              const isWrite = WRITES.has(name) && !isDryRun;
              const refused = isWrite ? this.refusal(String(name), parameters[0] as ResourceType) : undefined;
              if (refused !== undefined) {
                return Promise.reject(refused);
              }
              this.#writes += isWrite ? 1 : 0;
              return Reflect.apply(member, target, parameters);
            }
          : member;
      },
    });
  }

  /** Reasons and counts of the events about a policy, unordered. */
  async events(name: string): Promise<readonly string[]> {
    const { items } = await this.cluster.admin.list(EVENTS);
    return items
      .map((event) => event as unknown as { involvedObject: ObjectKey; reason: string; count: number })
      .filter(({ involvedObject }) => involvedObject.name === name)
      .map(({ reason, count }) => `${reason} ${count}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopControllers();
    for (const server of this.#others.values()) {
      await server[Symbol.asyncDispose]();
    }
    await this.server[Symbol.asyncDispose]();
    await this.cluster.close();
  }
}

/** Grants the controller exactly its own access rules. */
async function grantAccess(cluster: EmbeddedCluster): Promise<void> {
  const rbac = 'rbac.authorization.k8s.io';
  for (const [scope, rules] of [
    ['ClusterRole', CONTROLLER_RULES],
    ['Role', CONTROLLER_NAMESPACE_RULES],
  ] as const) {
    const metadata = { name: 'controller', ...(scope === 'Role' ? { namespace: NAMESPACE } : {}) };
    const role = { apiVersion: `${rbac}/v1`, kind: scope, metadata, rules };
    await cluster.admin.create(kind(role.apiVersion, scope), role);
    const binding = {
      apiVersion: `${rbac}/v1`,
      kind: `${scope}Binding`,
      metadata,
      roleRef: { apiGroup: rbac, kind: scope, name: 'controller' },
      subjects: [{ apiGroup: rbac, kind: 'User', name: CONTROLLER.username }],
    };
    await cluster.admin.create(kind(binding.apiVersion, binding.kind), binding);
  }
}
