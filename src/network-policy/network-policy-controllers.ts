// Assembles the controllers of NetworkPolicyStatuses and NetworkPolicyProviders.
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { Cluster } from '../cluster/index.ts';
import { isEqual, isJsonObject } from '../engine/index.ts';
import {
  keyOf,
  knownKind,
  type KubernetesObject,
  NETWORK_POLICY_PROVIDERS,
  NETWORK_POLICY_STATUSES,
  type NetworkPolicyProvider,
  type NetworkPolicyStatus,
  type ObjectKey,
  valueAt,
} from '../resources/index.ts';
import {
  aborted,
  anyOf,
  Controller,
  type EventSink,
  generationChanged,
  LOW_PRIORITY,
  type ObjectCache,
  type Predicate,
  type Runnable,
  type RuntimeMetrics,
  type SharedCaches,
  watch,
  withWriteBackoff,
} from '../runtime/index.ts';
import { AGENT_PODS, PODS, readAgentPod, withoutOtherFields } from './agent-pod.ts';
import { CurrentCatalogue, type LoadCatalogue } from './current-catalogue.ts';
import { NODE_ARGUMENTS } from './detect-providers.ts';
import { CONFIG_MAPS, FurtherConfigMaps } from './further-config-maps.ts';
import { withLeftoverFields } from './leftover-fields.ts';
import { NETWORK_POLICIES } from './network-policies.ts';
import { NetworkPolicyMetrics } from './network-policy-metrics.ts';
import { PROVIDER_CONFIG_MAPS } from './access-rules/network-policy-rules.ts';
import { PolicyProjection, projectionChanged } from './policy-projection.ts';
import type { AnnotationMode } from './settings/annotation-mode.ts';
import { ProviderReconciler } from './provider-reconciler.ts';
import { type ClusterProviders, clusterProviders } from './cluster-providers.ts';
import { RedundantPolicies } from './redundant-policies.ts';
import { StatusReconciler } from './status-reconciler.ts';
import { VersionObjects } from './version-objects.ts';

const NODES = knownKind('v1', 'Node');

/** The only key of detection, which looks at the whole cluster. */
const CLUSTER: ObjectKey = { name: 'cluster' };
/** Shortest time between two detections, since the agents of a large cluster change one after the other. Milliseconds. */
const DETECTION_INTERVAL_MS = 1_000;
/** Time between a change of a policy and the comparison of its namespace, since policies are applied many at once. Milliseconds. */
const COMPARISON_DELAY_MS = 1_000;
/** Concurrent reconciliations, which mostly wait for the API server: 10,000 statuses in a minute at 40 ms for each write. */
const CONCURRENCY = 8;

export interface NetworkPolicyOptions {
  /** A client with the rights of `NETWORK_POLICY_READER_RULES` and `NETWORK_POLICY_STATUS_RULES`, and to create events. */
  readonly cluster: Cluster;
  /** Caches of its own, so that missing kinds or rights keep nothing else waiting. */
  readonly caches: SharedCaches;
  readonly events: EventSink;
  readonly registry: Registry;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics;
  /** Whether statuses are repeated in an annotation of their NetworkPolicies. Default: `none`. */
  readonly annotation?: AnnotationMode | undefined;
  /** Loads the catalogue that extends the builtin one. Until it succeeds, the builtin one counts. Default: it always does. */
  readonly loadCatalogue?: LoadCatalogue;
  /** Shortest time between two detections, in milliseconds. Default: {@link DETECTION_INTERVAL_MS}. */
  readonly detectionIntervalMs?: number;
  /** Default: {@link COMPARISON_DELAY_MS}. */
  readonly comparisonDelayMs?: number;
  /** Time after which entries of reporters that do not run are removed, in milliseconds. Default: 10,000. */
  readonly unknownReporterMs?: number;
}

/** Detects network providers, and writes what they do with each NetworkPolicy. One leader runs them. */
export class NetworkPolicyControllers implements Runnable {
  readonly name = 'network policy status';
  readonly #options: NetworkPolicyOptions;
  readonly #pods: ObjectCache;
  readonly #nodes: ObjectCache;
  readonly #configMaps: readonly ObjectCache[];
  readonly #policies: ObjectCache;
  readonly #statuses: ObjectCache<NetworkPolicyStatus>;
  readonly #declared: ObjectCache<NetworkPolicyProvider>;
  readonly #versions: VersionObjects;
  readonly #furtherConfigMaps: FurtherConfigMaps;
  readonly #catalogue: CurrentCatalogue;
  readonly #detection: Controller;
  readonly #providers: Controller;
  readonly #status: Controller;
  readonly #comparison: Controller;
  readonly #redundant: RedundantPolicies;
  /** When a namespace is compared. Milliseconds since 1970. */
  readonly #comparedAt = new Map<string, number>();
  #known: ClusterProviders | undefined;
  #detectedAt = Number.NEGATIVE_INFINITY;

  constructor(options: NetworkPolicyOptions) {
    this.#options = options;
    const { caches } = options;
    this.#pods = caches.cache(PODS, { fieldSelector: AGENT_PODS, transform: withoutOtherFields });
    this.#nodes = caches.cache(NODES, { transform: withoutNodeDetails });
    this.#configMaps = PROVIDER_CONFIG_MAPS.map((name) =>
      caches.cache(CONFIG_MAPS, { fieldSelector: `metadata.name=${name}` }),
    );
    this.#policies = caches.cache(NETWORK_POLICIES);
    this.#statuses = caches.cache(NETWORK_POLICY_STATUSES, { transform: withLeftoverFields });
    this.#declared = caches.cache(NETWORK_POLICY_PROVIDERS);
    const onChange = (): void => this.#detection.enqueue(CLUSTER);
    this.#versions = new VersionObjects({ ...options, onChange });
    this.#furtherConfigMaps = new FurtherConfigMaps(caches, onChange);
    const { loadCatalogue: load, log } = options;
    this.#catalogue = new CurrentCatalogue({ onChange, log, ...(load === undefined ? {} : { load }) });
    this.#detection = this.#controller('network-policy-detection', {
      reconcile: () => this.#detect(),
      watches: [this.#pods, this.#nodes, ...this.#configMaps, this.#declared].map((cache) =>
        watch<KubernetesObject>(cache as ObjectCache, { keys: () => [CLUSTER], when: [contentChanged] }),
      ),
    });
    const metrics = new NetworkPolicyMetrics({
      registry: options.registry,
      statuses: this.#statuses,
      providers: () => this.#known,
      isCatalogueMissing: () => this.#catalogue.isMissing,
    });
    const cluster = metrics.counted(withWriteBackoff(options.cluster, { log: options.log }));
    const providers = (): ClusterProviders => this.#known ?? this.#detectNow();
    this.#providers = this.#providerController(cluster, providers);
    this.#redundant = new RedundantPolicies(this.#policies);
    this.#status = this.#statusController(cluster, providers, metrics);
    this.#comparison = this.#controller('network-policy-comparison', {
      reconcile: ({ name }) => this.#compare(name),
      watches: [
        watch(this.#policies, {
          keys: (object) => [{ name: keyOf(object).namespace ?? '' }],
          // At the start, statuses compare the namespaces of their policies.
          when: [generationChanged, ({ isInitial }) => !isInitial],
        }),
      ],
    });
  }

  /** Runs until `signal` is aborted; may then be started again. */
  async start(signal: AbortSignal): Promise<void> {
    const caches = [this.#pods, this.#nodes, ...this.#configMaps, this.#declared];
    const parts = [...caches.map(({ synced }) => synced), this.#catalogue.start(signal)];
    await Promise.race([aborted(signal), Promise.all(parts)]);
    if (!signal.aborted) {
      this.#redundant.clear();
      this.#detectNow();
      // The controllers start with a detection, which creates the objects of providers.
      this.#detectedAt = Number.NEGATIVE_INFINITY;
      await Promise.all(
        [this.#detection, this.#providers, this.#status, this.#comparison].map((one) => one.start(signal)),
      );
    }
  }

  /** Whether all queues are empty. */
  get isIdle(): boolean {
    return [this.#detection, this.#providers, this.#status, this.#comparison].every(({ isIdle }) => isIdle);
  }

  async #detect(): Promise<{ readonly requeueAfterMs?: number }> {
    const now = Date.now();
    const { detectionIntervalMs: intervalMs = DETECTION_INTERVAL_MS } = this.#options;
    const waitMs = this.#detectedAt + intervalMs - now;
    if (waitMs > 0) {
      return { requeueAfterMs: waitMs };
    }
    const before = this.#known;
    const known = this.#detectNow();
    this.#furtherConfigMaps.watch(known.detected, this.#catalogue.value);
    await this.#versions.watch(known.detected, this.#catalogue.value);
    const names = [
      ...known.detected.map(({ name }) => name),
      ...this.#declared.list().map((object) => keyOf(object).name),
    ];
    for (const name of new Set(names)) {
      this.#providers.enqueue({ name });
    }
    if (before === undefined || fingerprint(before) !== fingerprint(known)) {
      for (const policy of this.#policies.list()) {
        this.#status.enqueue(keyOf(policy), { priority: LOW_PRIORITY });
      }
    }
    return known.nextChange === undefined ? {} : { requeueAfterMs: Math.max(intervalMs, known.nextChange - now) };
  }

  /** Reconciles the policies of a namespace whose findings depend on others, some time after a change. */
  async #compare(namespace: string): Promise<{ readonly requeueAfterMs?: number }> {
    const { comparisonDelayMs = COMPARISON_DELAY_MS } = this.#options;
    const now = Date.now();
    const dueAt = this.#comparedAt.get(namespace) ?? now + comparisonDelayMs;
    if (dueAt > now) {
      this.#comparedAt.set(namespace, dueAt);
      return { requeueAfterMs: dueAt - now };
    }
    this.#comparedAt.delete(namespace);
    for (const key of await this.#redundant.update(namespace)) {
      this.#status.enqueue(key, { priority: LOW_PRIORITY });
    }
    return {};
  }

  #detectNow(): ClusterProviders {
    this.#detectedAt = Date.now();
    this.#known = clusterProviders(
      {
        pods: this.#pods.list().flatMap((pod) => readAgentPod(pod) ?? []),
        nodes: this.#nodes.list(),
        configMaps: [...this.#configMaps.flatMap((cache) => cache.list()), ...this.#furtherConfigMaps.list()],
        versions: this.#versions.list(),
        declared: this.#declared.list(),
      },
      this.#catalogue.value,
      this.#detectedAt,
    );
    return this.#known;
  }

  #providerController(cluster: Pick<Cluster, 'patch' | 'delete'>, providers: () => ClusterProviders): Controller {
    const declared = this.#declared;
    const reconciler = new ProviderReconciler({ cluster, declared, providers });
    return this.#controller('network-policy-providers', {
      reconcile: (key, signal) => reconciler.reconcile(key, signal),
      watches: [watch(declared, { when: [generationChanged] })],
      events: { sink: this.#options.events, of: (key) => declared.get(key) },
    });
  }

  #statusController(
    cluster: Pick<Cluster, 'patch' | 'delete'>,
    providers: () => ClusterProviders,
    metrics: NetworkPolicyMetrics,
  ): Controller {
    const policies = this.#policies;
    const { annotation = 'none', unknownReporterMs, events, log } = this.#options;
    const { discovery } = this.#options.cluster;
    const reconciler = new StatusReconciler({
      cluster,
      policies,
      statuses: this.#statuses,
      providers,
      redundancy: (key) => this.#redundant.find(key),
      events,
      onForged: (kind) => metrics.forged(kind),
      unknownReporterMs,
      projection: new PolicyProjection({ cluster, discovery, policies, annotation, log }),
    });
    return this.#controller('network-policy-status', {
      reconcile: (key, signal) => reconciler.reconcile(key, signal),
      watches: [watch(policies, { when: [anyOf(generationChanged, projectionChanged)] }), watch(this.#statuses)],
      events: { sink: events, of: (key) => policies.get(key) },
    });
  }

  #controller(
    name: string,
    options: Pick<ConstructorParameters<typeof Controller>[0], 'reconcile' | 'watches' | 'events'>,
  ): Controller {
    const { log, metrics } = this.#options;
    return new Controller({
      name,
      concurrency: CONCURRENCY,
      ...options,
      log,
      ...(metrics === undefined ? {} : { metrics }),
    });
  }
}

/** More than the version and the status differ. Nodes and pods are written often without a change that matters here. */
const contentChanged: Predicate = ({ before, after }) => {
  const [old, now] = [before, after].map((object) => object && withoutVersion(object));
  return !(isJsonObject(old) && isJsonObject(now) && isEqual(old, now));
};

function withoutVersion({ metadata, ...object }: KubernetesObject): unknown {
  const { resourceVersion: _, ...others } = metadata;
  return { ...object, metadata: others };
}

/** The node with what detection reads. */
function withoutNodeDetails({ apiVersion, kind, metadata, status }: KubernetesObject): KubernetesObject {
  const { name = '', uid = '', resourceVersion = '', creationTimestamp = '', annotations = {} } = metadata;
  const args = annotations[NODE_ARGUMENTS];
  const kubeletVersion = valueAt(status, 'nodeInfo', 'kubeletVersion');
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      uid,
      resourceVersion,
      creationTimestamp,
      ...(args === undefined ? {} : { annotations: { [NODE_ARGUMENTS]: args } }),
    },
    status: { nodeInfo: { kubeletVersion: kubeletVersion ?? '' } },
  };
}

/** What of the providers decides about statuses. */
function fingerprint({ digest, providers, reporting, unguardedNodes }: ClusterProviders): string {
  const instances = providers.map(({ instance, controllerName, os }) => [instance, controllerName, os]);
  return JSON.stringify([digest, unguardedNodes > 0, instances, [...reporting.keys()]]);
}
