// What the controllers of the hub and those of a member cluster need alike. A process that runs both has them once.
import type { Logger } from 'pino';
import { Registry } from 'prom-client';
import type { Cluster } from '../../cluster/index.ts';
import { knownKind, type KubernetesObject, type ObjectKey } from '../../resources/index.ts';
import {
  annotationsChanged,
  anyOf,
  Controller,
  type EventSink,
  generationChanged,
  type ObjectCache,
  type Predicate,
  type Runnable,
  type RuntimeMetrics,
  type SharedCaches,
  withWriteBackoff,
} from '../../runtime/index.ts';
import { EvaluationLanes } from '../evaluation/evaluation-lanes.ts';
import {
  CUSTOM_RESOURCE_DEFINITIONS,
  type CustomResourceDefinition,
  KindMappings,
  withoutSchemas,
} from '../objects/kind-mappings.ts';
import { WatchedKinds } from '../objects/watched-kinds.ts';
import { PolicyCounts } from './policy-counts.ts';

/** Concurrent reconciliations of one kind. They mostly wait for API servers. */
const CONCURRENCY = 8;

export interface GovernancePartsOptions {
  /** A client with the rights of `GOVERNANCE_CONTROLLER_RULES`. */
  readonly cluster: Cluster;
  /** The cluster as the governance account, whose rights administrators grant. */
  readonly governed: Cluster;
  readonly caches: SharedCaches;
  readonly events: EventSink;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics;
  /** Gets the metrics of policies. Default: nobody reads them. */
  readonly registry?: Registry;
}

/** Watches the objects that policies read, and evaluates policies, while it runs. */
export class GovernanceParts implements Runnable {
  readonly name = 'governed objects';
  readonly cluster: Cluster;
  readonly governed: Cluster;
  readonly caches: SharedCaches;
  readonly events: EventSink;
  readonly log: Logger;
  readonly namespaces: ObjectCache;
  readonly definitions: ObjectCache<CustomResourceDefinition>;
  readonly mappings: KindMappings;
  readonly watched: WatchedKinds;
  readonly evaluations: EvaluationLanes;
  readonly registry: Registry;
  readonly counts: PolicyCounts;
  readonly #metrics: RuntimeMetrics | undefined;

  constructor({ cluster, governed, caches, events, log, metrics, registry = new Registry() }: GovernancePartsOptions) {
    this.cluster = withWriteBackoff(cluster, { log });
    this.governed = withWriteBackoff(governed, { log });
    this.caches = caches;
    this.events = events;
    this.log = log;
    this.#metrics = metrics;
    this.namespaces = caches.cache(knownKind('v1', 'Namespace'));
    this.definitions = caches.cache(CUSTOM_RESOURCE_DEFINITIONS, { transform: withoutSchemas });
    this.mappings = new KindMappings(cluster.discovery, this.definitions);
    this.evaluations = new EvaluationLanes(log);
    this.watched = new WatchedKinds({ cluster: this.governed, log });
    this.registry = registry;
    this.counts = new PolicyCounts(registry);
  }

  /** @param eventsOn the object that events about failures of a key are about */
  controller(
    name: string,
    eventsOn: (key: ObjectKey) => KubernetesObject | undefined,
    options: Pick<ConstructorParameters<typeof Controller>[0], 'reconcile' | 'watches' | 'ownerOf'>,
  ): Controller {
    return new Controller({
      name,
      concurrency: CONCURRENCY,
      events: { sink: this.events, of: eventsOn },
      ...options,
      log: this.log,
      ...(this.#metrics === undefined ? {} : { metrics: this.#metrics }),
    });
  }

  async start(signal: AbortSignal): Promise<void> {
    await Promise.all([this.watched.start(signal), this.evaluations.start(signal)]);
  }
}

const labelsChanged: Predicate = ({ before, after }) =>
  JSON.stringify(before?.metadata.labels) !== JSON.stringify(after?.metadata.labels);

/** What an object declares has changed, not only its status. */
export const specChanged = anyOf(generationChanged, annotationsChanged, labelsChanged);
