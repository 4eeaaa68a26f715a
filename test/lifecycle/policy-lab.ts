// A cluster in memory, a policy server that it asks about requests, and the controllers between the two.
import { readFileSync } from 'node:fs';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { ApiError, EmbeddedCluster } from '../../src/cluster/index.ts';
import { FilePolicySet, type PolicySet, PolicyControllers, type WantedPolicy } from '../../src/lifecycle/index.ts';
import {
  customResourceDefinition,
  keyOf,
  type KubernetesObject,
  kubernetesKind,
  type ObjectKey,
  OWN_KINDS,
  type ResourceType,
} from '../../src/resources/index.ts';
import { EventRecorder, EVENTS, Runtime, RuntimeMetrics, SharedCaches } from '../../src/runtime/index.ts';
import { startServer, type TestServer, until } from '../server/harness.ts';

/** A policy as tests look at it. */
export interface Policy extends KubernetesObject {
  readonly status?: {
    readonly phase: string;
    readonly reason: string;
    readonly message: string;
    readonly policyStatus: string;
    readonly observedGeneration: number;
    readonly conditions: readonly { readonly type: string; readonly status: string }[];
  };
}

/** A webhook configuration as tests look at it. */
export interface WebhookConfiguration extends KubernetesObject {
  readonly webhooks: readonly Readonly<Record<string, unknown>>[];
}

export function kind<T extends KubernetesObject = KubernetesObject>(apiVersion: string, name: string): ResourceType<T> {
  const type = kubernetesKind(apiVersion, name) ?? OWN_KINDS.find((own) => own.kind === name);
  if (type === undefined) {
    throw new Error(`no kind ${name}`);
  }
  return type as unknown as ResourceType<T>;
}

export const PODS = kind('v1', 'Pod');
export const NAMESPACES = kind('v1', 'Namespace');
export const VALIDATING = kind<WebhookConfiguration>(
  'admissionregistration.k8s.io/v1',
  'ValidatingWebhookConfiguration',
);
export const MUTATING = kind<WebhookConfiguration>('admissionregistration.k8s.io/v1', 'MutatingWebhookConfiguration');

/** Counts how often a reconciliation looked at each policy. */
class WatchedSet implements PolicySet {
  readonly looks = new Map<string, number>();
  readonly #set: PolicySet;

  constructor(set: PolicySet) {
    this.#set = set;
  }

  replace(policies: readonly WantedPolicy[]): Promise<void> {
    return this.#set.replace(policies);
  }

  put(policy: WantedPolicy): Promise<void> {
    return this.#set.put(policy);
  }

  remove(id: string): Promise<void> {
    return this.#set.remove(id);
  }

  get(id: string): ReturnType<PolicySet['get']> {
    this.looks.set(id, (this.looks.get(id) ?? 0) + 1);
    return this.#set.get(id);
  }
}

/** Get one with {@link PolicyLab.start}. */
export class PolicyLab implements AsyncDisposable {
  readonly cluster: EmbeddedCluster;
  readonly server: TestServer;
  readonly #metrics: RuntimeMetrics;
  #controllers: PolicyControllers | undefined;
  #set: WatchedSet | undefined;
  #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();

  private constructor(cluster: EmbeddedCluster, server: TestServer, registry: Registry) {
    this.cluster = cluster;
    this.server = server;
    this.#metrics = new RuntimeMetrics(registry);
  }

  static async start(): Promise<PolicyLab> {
    const cluster = await EmbeddedCluster.open();
    for (const own of OWN_KINDS) {
      const definition = customResourceDefinition(own);
      await cluster.admin.create(kind('apiextensions.k8s.io/v1', 'CustomResourceDefinition'), definition);
    }
    const registry = new Registry();
    const started: { lab?: PolicyLab } = {};
    const onStatusChange = (id: string): void => started.lab?.statusChanged(id);
    const server = await startServer({ policies: {}, workers: 1, registry, onStatusChange });
    const lab = new PolicyLab(cluster, server, registry);
    started.lab = lab;
    await lab.startControllers();
    return lab;
  }

  statusChanged(id: string): void {
    this.#controllers?.statusChanged(id);
  }

  async startControllers(): Promise<void> {
    const log = pino({ level: 'silent' });
    const cluster = this.cluster.admin;
    const { folder, server, addresses } = this.server;
    const metrics = this.#metrics;
    const caches = new SharedCaches({ cluster, log, metrics });
    const events = new EventRecorder({ cluster, component: 'portcullis', log, metrics });
    this.#set = new WatchedSet(new FilePolicySet(folder.policiesFile, server));
    this.#controllers = new PolicyControllers({
      cluster,
      caches,
      set: this.#set,
      target: {
        url: addresses.admission.replace('127.0.0.1', 'localhost'),
        ca: readFileSync(folder.certificates.caFile, 'utf8'),
      },
      events,
      log,
      metrics,
    });
    this.#stop = new AbortController();
    this.#running = new Runtime({ log })
      .add('cache', caches)
      .add('leader', events, this.#controllers)
      .run(this.#stop.signal);
    await Promise.race([this.#controllers.ready, this.#running]);
  }

  async stopControllers(): Promise<void> {
    this.#controllers = undefined;
    this.#stop.abort();
    await this.#running;
  }

  async create<T extends KubernetesObject>(object: T): Promise<T> {
    return await this.cluster.admin.create(kind<T>(object.apiVersion, object.kind), object);
  }

  async merge(type: ResourceType, key: ObjectKey, body: Readonly<Record<string, unknown>>): Promise<void> {
    await this.cluster.admin.patch(type, key, { type: 'merge', body: body as never });
  }

  /** What is in the cluster; undefined when nothing is. */
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

  /** Waits until something is so of an object, or of its absence. */
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

  /** Waits until a policy's status has the phase for the generation that is declared. */
  async reaches({ apiVersion, kind: name, metadata }: KubernetesObject, phase: string): Promise<Policy> {
    const isThere = (policy: Policy | undefined): boolean =>
      policy?.status?.phase === phase && policy.status.observedGeneration === policy.metadata.generation;
    const policy = await this.sees(kind<Policy>(apiVersion, name), keyOf({ metadata } as KubernetesObject), isThere);
    return policy as Policy;
  }

  /** Waits until controllers have looked at a policy once more, from beginning to end. */
  async looksAgain(id: string): Promise<void> {
    const looks = this.#set?.looks.get(id) ?? 0;
    this.statusChanged(id);
    // Never twice at once: when it looks for the second time the first one is over.
    await until(
      () => (this.#set?.looks.get(id) ?? 0) > looks,
      () => `a look at ${id}`,
    );
    this.statusChanged(id);
    await until(
      () => (this.#set?.looks.get(id) ?? 0) > looks + 1,
      () => `another look at ${id}`,
    );
  }

  /** The version of the cluster when nothing has been written for some time. */
  async quiet(): Promise<string> {
    let last = '';
    let since = 0;
    await until(
      () => {
        const now = String(this.cluster.revision);
        since = now === last ? since : performance.now();
        last = now;
        return performance.now() - since > 150;
      },
      () => 'the cluster to be quiet',
    );
    return last;
  }

  /** Reasons of the events about a policy with their counts, in no order. */
  async events(name: string): Promise<readonly string[]> {
    const { items } = await this.cluster.admin.list(EVENTS);
    return items
      .map((event) => event as unknown as { involvedObject: ObjectKey; reason: string; count: number })
      .filter(({ involvedObject }) => involvedObject.name === name)
      .map(({ reason, count }) => `${reason} ${count}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopControllers();
    await this.server[Symbol.asyncDispose]();
    await this.cluster.close();
  }
}
