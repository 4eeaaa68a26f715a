// Deletes the content of terminating Namespaces, then their finalizer (k8s.io/kubernetes, pkg/controller/namespace/deletion).
import { setTimeout } from 'node:timers/promises';
import { ApiError } from '../../../cluster/index.ts';
import type { Cluster } from '../../../cluster/index.ts';
import { isJsonObject, setCondition } from '../../../resources/index.ts';
import type { Condition, KubernetesObject, ResourceType } from '../../../resources/index.ts';
import type { ResourceRegistry } from '../kinds/resource-registry.ts';
import type { StoredChange } from '../store/change-log.ts';
import type { CollectionStore } from '../store/collection-store.ts';
import { TimeSlice } from '../../../threads/index.ts';
import { ReconcileQueue } from './reconcile-queue.ts';
import type { OnReconcileError } from './reconcile-queue.ts';

const NAMESPACES = 'namespaces';

/** The pause after a pass over a namespace, as a multiple of the duration of the pass. */
const PAUSE_FACTOR = 10;
const MIN_PAUSE_MS = 5;
const MAX_PAUSE_MS = 250;

/** The remaining content of a namespace. */
interface RemainingContent {
  /** Counts by `resource.group`. */
  readonly resources: ReadonlyMap<string, number>;
  /** Counts by finalizer. */
  readonly finalizers: ReadonlyMap<string, number>;
  /** Messages of failed deletions. */
  readonly failures: readonly string[];
}

export class NamespaceCleaner {
  readonly #store: CollectionStore;
  readonly #registry: ResourceRegistry;
  readonly #cluster: Cluster;
  readonly #now: () => number;
  readonly queue: ReconcileQueue;
  /** The pause before the next pass. */
  #pauseMs = 0;

  constructor(
    store: CollectionStore,
    registry: ResourceRegistry,
    cluster: Cluster,
    now: () => number,
    onError: OnReconcileError,
  ) {
    this.#store = store;
    this.#registry = registry;
    this.#cluster = cluster;
    this.#now = now;
    this.queue = new ReconcileQueue((name) => this.#reconcile(name), onError);
  }

  start(): void {
    for (const object of this.#store.collection(NAMESPACES).list()) {
      this.#enqueue(object);
    }
  }

  readonly onChange = (collection: string, { type, object }: StoredChange): void => {
    if (collection === NAMESPACES) {
      if (type !== 'DELETED') {
        this.#enqueue(object);
      }
    } else if (object.metadata.namespace !== undefined) {
      const namespace = this.#store.get(NAMESPACES, '', object.metadata.namespace);
      if (namespace !== undefined) {
        this.#enqueue(namespace);
      }
    }
  };

  #enqueue({ metadata: { name = '', deletionTimestamp } }: KubernetesObject): void {
    if (deletionTimestamp !== undefined) {
      this.queue.add(name);
    }
  }

  async #reconcile(name: string): Promise<void> {
    const namespace = this.#store.get(NAMESPACES, '', name);
    const served = this.#registry.ofCollection(NAMESPACES);
    if (namespace?.metadata.deletionTimestamp === undefined || served === undefined || isFinalized(namespace)) {
      return;
    }
    await this.#pause();
    const began = performance.now();
    const remaining = await this.#deleteContent(name);
    this.#pauseMs = Math.min((performance.now() - began) * PAUSE_FACTOR, MAX_PAUSE_MS);
    await this.#report(served.definition, name, remaining);
    if (remaining.resources.size === 0 && remaining.failures.length === 0) {
      await this.#finalize(served.definition, name);
    } else if (remaining.failures.length > 0) {
      throw new Error(`not all of namespace ${name} could be deleted: ${remaining.failures.join(', ')}`);
    }
  }

  /** Pauses between passes. Otherwise each deleted object of a large namespace would cause a pass over the whole namespace. */
  async #pause(): Promise<void> {
    if (this.#pauseMs >= MIN_PAUSE_MS) {
      await setTimeout(this.#pauseMs);
    }
    this.#pauseMs = 0;
  }

  /** Deletes all objects that are not terminating yet. Returns what remains. */
  async #deleteContent(namespace: string): Promise<RemainingContent> {
    const resources = new Map<string, number>();
    const finalizers = new Map<string, number>();
    const failures: string[] = [];
    const slice = new TimeSlice();
    for (const collection of Array.from(this.#store.collections())) {
      const served = this.#registry.ofCollection(collection.name);
      if (served === undefined) {
        continue;
      }
      const objects = [...collection.list(namespace)];
      for (const { metadata } of objects) {
        if (metadata.deletionTimestamp === undefined) {
          const failure = await this.#delete(served.definition, namespace, metadata.name ?? '');
          failures.push(...(failure === undefined ? [] : [failure]));
          await slice.yield();
        }
      }
      for (const { metadata } of collection.list(namespace)) {
        const { resource, group } = served.definition;
        count(resources, `${resource}.${group}`);
        for (const finalizer of metadata.finalizers ?? []) {
          count(finalizers, finalizer);
        }
      }
    }
    return { resources, finalizers, failures };
  }

  async #delete(type: ResourceType, namespace: string, name: string): Promise<string | undefined> {
    try {
      await this.#cluster.delete(type, { namespace, name }, { propagationPolicy: 'Background' });
      return undefined;
    } catch (error) {
      if (!(error instanceof ApiError)) {
        throw error;
      }
      return error.code === 404 ? undefined : error.message;
    }
  }

  /** Describes the remaining content in the conditions of the Namespace. */
  async #report(type: ResourceType, name: string, remaining: RemainingContent): Promise<void> {
    const namespace = this.#store.get(NAMESPACES, '', name);
    if (namespace === undefined) {
      return;
    }
    const status = isJsonObject(namespace['status']) ? namespace['status'] : {};
    const before = (status['conditions'] ?? []) as unknown as readonly Condition[];
    let conditions = before;
    for (const condition of conditionsOf(remaining)) {
      conditions = setCondition(conditions, condition, this.#now());
    }
    if (conditions !== before) {
      await this.#cluster.update(type, { ...namespace, status: { ...status, conditions } }, { subresource: 'status' });
    }
  }

  async #finalize(type: ResourceType, name: string): Promise<void> {
    const namespace = this.#store.get(NAMESPACES, '', name);
    if (namespace !== undefined) {
      await this.#cluster.update(type, { ...namespace, spec: {} }, { subresource: 'finalize' });
    }
  }
}

function isFinalized({ spec }: KubernetesObject): boolean {
  const { finalizers = [] } = (spec ?? {}) as { finalizers?: readonly string[] };
  return finalizers.length === 0;
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function conditionsOf({ resources, finalizers, failures }: RemainingContent) {
  const resourceTexts = [...resources].map(([name, number]) => `${name} has ${number} resource instances`).sort();
  const finalizerTexts = [...finalizers].map(([name, number]) => `${name} in ${number} resource instances`).sort();
  return [
    condition(
      'NamespaceDeletionDiscoveryFailure',
      false,
      'ResourcesDiscovered',
      'All resources successfully discovered',
    ),
    condition(
      'NamespaceDeletionGroupVersionParsingFailure',
      false,
      'ParsedGroupVersions',
      'All legacy kube types successfully parsed',
    ),
    failures.length > 0
      ? condition(
          'NamespaceDeletionContentFailure',
          true,
          'ContentDeletionFailed',
          `Failed to delete all resource types, ${failures.length} remaining: ${[...failures].sort().join(', ')}`,
        )
      : condition(
          'NamespaceDeletionContentFailure',
          false,
          'ContentDeleted',
          'All content successfully deleted, may be waiting on finalization',
        ),
    resourceTexts.length > 0
      ? condition(
          'NamespaceContentRemaining',
          true,
          'SomeResourcesRemain',
          `Some resources are remaining: ${resourceTexts.join(', ')}`,
        )
      : condition('NamespaceContentRemaining', false, 'ContentRemoved', 'All content successfully removed'),
    finalizerTexts.length > 0
      ? condition(
          'NamespaceFinalizersRemaining',
          true,
          'SomeFinalizersRemain',
          `Some content in the namespace has finalizers remaining: ${finalizerTexts.join(', ')}`,
        )
      : condition(
          'NamespaceFinalizersRemaining',
          false,
          'ContentHasNoFinalizers',
          'All content-preserving finalizers finished',
        ),
  ];
}

function condition(type: string, isTrue: boolean, reason: string, message: string) {
  return { type, status: isTrue ? ('True' as const) : ('False' as const), reason, message };
}
