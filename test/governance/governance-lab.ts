// An embedded cluster with our kinds, and the controllers of governance.
import { type Logger, pino } from 'pino';
import { EmbeddedCluster, type EmbeddedClusterOptions } from '../../src/apiserver/index.ts';
import type { Cluster } from '../../src/cluster/index.ts';
import { GovernanceControllers } from '../../src/governance/governance-controllers.ts';
import {
  DEFAULT_GOVERNANCE_SETTINGS,
  type GovernanceSettings,
} from '../../src/governance/settings/governance-settings.ts';
import {
  ALL_KINDS,
  customResourceDefinition,
  type JsonObject,
  POLICIES,
  POLICY_REVISIONS,
} from '../../src/resources/index.ts';
import { EventRecorder, Runtime, SharedCaches } from '../../src/runtime/index.ts';
import { LabObjects } from './lab-objects.ts';

export type { LabObject, LabReference } from './lab-objects.ts';

export interface GovernanceLabOptions {
  readonly settings?: Partial<GovernanceSettings>;
  /** The cluster as the governance account. Default: with all rights. */
  readonly governed?: (cluster: EmbeddedCluster) => Cluster;
  /** The cluster as the user that the controllers are. Default: the administrator. */
  readonly as?: (cluster: EmbeddedCluster) => Cluster | undefined;
  /** What the controllers use in place of the cluster, such as one that fails. */
  readonly through?: (cluster: Cluster) => Cluster;
  /** The log of the controllers. Default: none. */
  readonly log?: Logger;
  /** Tokens of users of a gateway. Default: none. */
  readonly tokens?: EmbeddedClusterOptions['tokens'];
}

/** The namespace of revisions. */
export const REVISIONS_IN = 'portcullis';

const GOVERNANCE = 'policy.open-cluster-management.io/v1';

/** The definition of a kind that Policies may apply, and whose statuses tests write. */
export function templateKind(kind: string, scope: 'Namespaced' | 'Cluster'): JsonObject {
  const singular = kind.toLowerCase();
  const plural = `${singular}s`;
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: `${plural}.lab.example.com`,
      labels: { 'policy.open-cluster-management.io/policy-type': 'template' },
    },
    spec: {
      group: 'lab.example.com',
      scope,
      names: { kind, plural, singular, listKind: `${kind}List` },
      versions: [{ name: 'v1', served: true, storage: true, subresources: { status: {} }, schema }],
    },
  };
}

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
export class GovernanceLab extends LabObjects implements AsyncDisposable {
  readonly cluster: EmbeddedCluster;
  readonly #options: GovernanceLabOptions;
  #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #controllers: GovernanceControllers | undefined;

  private constructor(cluster: EmbeddedCluster, options: GovernanceLabOptions) {
    super(cluster.admin);
    this.cluster = cluster;
    this.#options = options;
  }

  static async start(options: GovernanceLabOptions = {}): Promise<GovernanceLab> {
    const lab = new GovernanceLab(await EmbeddedCluster.open({ tokens: options.tokens ?? [] }), options);
    await lab.apply(...ALL_KINDS.map((kind) => customResourceDefinition(kind)), templateKind('Check', 'Namespaced'));
    await lab.namespace('default', 'policies', REVISIONS_IN);
    await lab.startControllers();
    return lab;
  }

  async startControllers(): Promise<void> {
    const { as, governed, settings, log = pino({ level: 'silent' }), through = (one: Cluster) => one } = this.#options;
    const cluster = through(as?.(this.cluster) ?? this.cluster.admin);
    const caches = new SharedCaches({ cluster, log });
    const events = new EventRecorder({ cluster, component: 'portcullis', log });
    const controllers = new GovernanceControllers({
      cluster,
      governed: governed === undefined ? cluster : through(governed(this.cluster)),
      caches,
      settings: { ...DEFAULT_GOVERNANCE_SETTINGS, ...settings },
      kept: { revisions: caches.cache(POLICY_REVISIONS, { namespace: REVISIONS_IN }), namespace: REVISIONS_IN },
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

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopControllers();
    await this.cluster.close();
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
