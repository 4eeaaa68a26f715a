// An embedded cluster with our kinds, and the controllers of governance.
import { pino } from 'pino';
import { EmbeddedCluster, type EmbeddedClusterOptions } from '../../src/apiserver/index.ts';
import { type Cluster, isNotFound } from '../../src/cluster/index.ts';
import { parseYaml } from '../../src/engine/index.ts';
import { GovernanceControllers } from '../../src/governance/governance-controllers.ts';
import { DEFAULT_GOVERNANCE_SETTINGS, type GovernanceSettings } from '../../src/governance/governance-settings.ts';
import {
  ALL_KINDS,
  type Condition,
  customResourceDefinition,
  isJsonObject,
  type JsonObject,
  keyOf,
  kubernetesKind,
  type KubernetesObject,
  POLICIES,
  type Policy,
  type ResourceType,
} from '../../src/resources/index.ts';
import { EventRecorder, Runtime, SharedCaches } from '../../src/runtime/index.ts';
import { until } from '../server/harness.ts';

/** An object, of which tests read any field. */
export type LabObject = KubernetesObject & {
  readonly spec?: JsonObject;
  readonly status?: LabStatus;
  readonly data?: JsonObject;
};

export interface LabStatus {
  readonly compliant?: string;
  readonly history?: readonly { readonly message: string }[];
  readonly conditions?: readonly Condition[];
  readonly observedGeneration?: number;
  readonly [field: string]: unknown;
}

/** The fields of an event that tests read. */
export interface LabEvent {
  readonly reason?: string;
  readonly note?: string;
  readonly message?: string;
  readonly regarding?: { readonly kind?: string; readonly name?: string };
}

/** An object of the embedded cluster: its kind as in `kubectl get`, and `namespace/name` or `name`. */
export interface LabReference {
  readonly apiVersion?: string;
  readonly kind: string;
  readonly name: string;
}

export interface GovernanceLabOptions {
  readonly settings?: Partial<GovernanceSettings>;
  /** The cluster as the governance account. Default: with all rights. */
  readonly governed?: (cluster: EmbeddedCluster) => Cluster;
  /** What the controllers use in place of the cluster, such as one that fails. */
  readonly through?: (cluster: Cluster) => Cluster;
  /** Tokens of users of a gateway. Default: none. */
  readonly tokens?: EmbeddedClusterOptions['tokens'];
}

const GOVERNANCE = 'policy.open-cluster-management.io/v1';
const FIELD_MANAGER = 'lab';

/** A kind that Policies may apply, and whose statuses tests write. */
const CHECKS = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: checks.lab.example.com
  labels: {policy.open-cluster-management.io/policy-type: template}
spec:
  group: lab.example.com
  scope: Namespaced
  names: {kind: Check, plural: checks, singular: check, listKind: CheckList}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`;
export const CHECK = { apiVersion: 'lab.example.com/v1', kind: 'Check' } as const;

/** A cluster whose writes a test counts, delays or refuses. */
export function withWrites(cluster: Cluster, write: <T>(send: () => Promise<T>, verb: string) => Promise<T>): Cluster {
  return {
    discovery: cluster.discovery,
    get: (...parameters) => cluster.get(...parameters),
    list: (...parameters) => cluster.list(...parameters),
    watch: (...parameters) => cluster.watch(...parameters),
    create: (type, object, options) => write(() => cluster.create(type, object, options), `create ${type.resource}`),
    update: (type, object, options) =>
      options?.dryRun === true
        ? cluster.update(type, object, options)
        : write(() => cluster.update(type, object, options), `update ${type.resource}`),
    patch: (type, key, patch, options) =>
      write(() => cluster.patch(type, key, patch, options), `patch ${type.resource}`),
    delete: (type, key, options) => write(() => cluster.delete(type, key, options), `delete ${type.resource}`),
    deleteCollection: (type, options) => cluster.deleteCollection(type, options),
  };
}

/** Created by {@link GovernanceLab.start}. */
export class GovernanceLab implements AsyncDisposable {
  readonly cluster: EmbeddedCluster;
  readonly #options: GovernanceLabOptions;
  #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #controllers: GovernanceControllers | undefined;

  private constructor(cluster: EmbeddedCluster, options: GovernanceLabOptions) {
    this.cluster = cluster;
    this.#options = options;
  }

  static async start(options: GovernanceLabOptions = {}): Promise<GovernanceLab> {
    const lab = new GovernanceLab(await EmbeddedCluster.open({ tokens: options.tokens ?? [] }), options);
    await lab.apply(...ALL_KINDS.map((kind) => customResourceDefinition(kind)), CHECKS);
    await lab.namespace('default', 'policies');
    await lab.startControllers();
    return lab;
  }

  async startControllers(): Promise<void> {
    const log = pino({ level: 'silent' });
    const { governed, settings, through = (one: Cluster) => one } = this.#options;
    const cluster = through(this.cluster.admin);
    const caches = new SharedCaches({ cluster, log });
    const events = new EventRecorder({ cluster, component: 'portcullis', log });
    const controllers = new GovernanceControllers({
      cluster,
      governed: governed === undefined ? cluster : through(governed(this.cluster)),
      caches,
      settings: { ...DEFAULT_GOVERNANCE_SETTINGS, ...settings },
      events,
      log,
    });
    this.#controllers = controllers;
    this.#stop = new AbortController();
    this.#running = new Runtime({ log }).add('cache', caches).add('leader', events, controllers).run(this.#stop.signal);
    await Promise.race([controllers.ready, this.#running]);
  }

  /** The rules for writes; they are checked if a test registers a webhook. */
  get reviews(): GovernanceControllers['reviews'] {
    if (this.#controllers === undefined) {
      throw new Error('the controllers were not started');
    }
    return this.#controllers.reviews;
  }

  async stopControllers(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /** Applies objects, or YAML with any number of them, as `kubectl apply --server-side` does. */
  async apply(...manifests: readonly (string | object)[]): Promise<void> {
    const objects = manifests.flatMap((manifest) => (typeof manifest === 'string' ? parseYaml(manifest) : [manifest]));
    for (const object of objects.filter(isJsonObject) as (JsonObject & KubernetesObject)[]) {
      const type = await this.#type(object.apiVersion, object.kind);
      const options = { fieldManager: FIELD_MANAGER };
      await this.cluster.admin.patch(type, keyOf(object), { type: 'apply', body: object, force: true }, options);
    }
  }

  async namespace(...names: readonly string[]): Promise<void> {
    await this.apply(...names.map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })));
  }

  /** Changes fields by a merge patch. */
  async merge(reference: LabReference, body: JsonObject): Promise<void> {
    const { type, key } = await this.#find(reference);
    await this.cluster.admin.patch(type, key, { type: 'merge', body });
  }

  /** Writes the status of an object, as its own controller would. */
  async setStatus(reference: LabReference, status: JsonObject): Promise<void> {
    const { type, key } = await this.#find(reference);
    await this.cluster.admin.patch(type, key, { type: 'merge', body: { status } }, { subresource: 'status' });
  }

  async delete(reference: LabReference): Promise<void> {
    const { type, key } = await this.#find(reference);
    await this.cluster.admin.delete(type, key);
  }

  /** An object of the cluster; undefined if it does not exist. */
  async get(reference: LabReference): Promise<LabObject | undefined> {
    const { type, key } = await this.#find(reference);
    try {
      return await this.cluster.admin.get(type, key);
    } catch (error) {
      if (isNotFound(error)) {
        return undefined;
      }
      throw error;
    }
  }

  /** All objects of a kind, by name. */
  async list(kind: string, apiVersion?: string): Promise<readonly LabObject[]> {
    const { type } = await this.#find({ kind, name: '', ...(apiVersion === undefined ? {} : { apiVersion }) });
    const { items } = await this.cluster.admin.list(type);
    return items;
  }

  /** Events with a reason, of any object. */
  async events(reason: string): Promise<readonly LabEvent[]> {
    const events = (await this.list('Event', 'events.k8s.io/v1')) as readonly (LabObject & LabEvent)[];
    return events.filter((event) => event.reason === reason);
  }

  /** The Policy `namespace/name`, or a copy. */
  async policy(name: string): Promise<Policy | undefined> {
    return (await this.get({ kind: 'Policy', name })) as Policy | undefined;
  }

  /** Waits until a condition holds for an object, or for undefined if it does not exist. */
  async sees(reference: LabReference, holds: (object: LabObject | undefined) => boolean): Promise<LabObject> {
    let object: LabObject | undefined;
    await until(
      async () => holds((object = await this.get(reference))),
      () => `${reference.kind} ${reference.name} to be as expected, last ${JSON.stringify(object, null, 1)}`,
    );
    return object as LabObject;
  }

  /** Waits until an object exists. */
  async appears(reference: LabReference): Promise<LabObject> {
    return await this.sees(reference, (object) => object !== undefined);
  }

  /** Waits until an object does not exist. */
  async disappears(reference: LabReference): Promise<void> {
    await this.sees(reference, (object) => object === undefined);
  }

  /** Waits until a Policy, or its copy, has a compliance. */
  async reaches(name: string, compliant: string): Promise<Policy> {
    const policy = await this.sees({ kind: 'Policy', name }, (object) => object?.status?.compliant === compliant);
    return policy as unknown as Policy;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopControllers();
    await this.cluster.close();
  }

  async #find({ apiVersion, kind, name }: LabReference) {
    const [first = '', second] = name.split('/');
    const key = second === undefined ? { name: first } : { namespace: first, name: second };
    const own = ALL_KINDS.find((one) => one.kind === kind && apiVersion === undefined);
    const type = own ?? (await this.#type(apiVersion ?? 'v1', kind));
    return { type: type as ResourceType<LabObject>, key };
  }

  async #type(apiVersion: string, kind: string): Promise<ResourceType> {
    const type = kubernetesKind(apiVersion, kind) ?? (await this.cluster.admin.discovery.find(apiVersion, kind));
    if (type === undefined) {
      throw new Error(`the cluster has no kind ${kind} in ${apiVersion}`);
    }
    return type;
  }
}

/** A Policy in the namespace `policies`, with templates of the kind Check that have its dependencies. */
export function policyOfChecks(
  name: string,
  checks: readonly string[],
  { spec = {}, extra = {} }: { readonly spec?: JsonObject; readonly extra?: Readonly<Record<string, JsonObject>> } = {},
): JsonObject {
  return {
    apiVersion: GOVERNANCE,
    kind: POLICIES.kind,
    metadata: { name, namespace: 'policies' },
    spec: {
      disabled: false,
      ...spec,
      'policy-templates': checks.map((check) => ({
        objectDefinition: { ...CHECK, metadata: { name: check }, spec: {} },
        ...extra[check],
      })),
    },
  };
}
