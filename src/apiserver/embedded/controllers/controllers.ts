import type { Cluster } from '../../../cluster/index.ts';
import { API_SERVER } from '../admission/guarded-admission.ts';
import type { ClusterContext } from '../objects/cluster-context.ts';
import type { UserInfo } from '../request/request.ts';
import { CustomResourceCleaner } from './custom-resource-cleaner.ts';
import { EventExpiry } from './event-expiry.ts';
import { GarbageCollector } from './garbage-collector.ts';
import { HistoryCompaction } from './history-compaction.ts';
import { NamespaceCleaner } from './namespace-cleaner.ts';
import type { OnReconcileError } from './reconcile-queue.ts';

/** The user of a controller. It has the name that it has in Kubernetes, because webhooks may exempt it by name. */
function controllerUser(name: string): UserInfo {
  const groups = ['system:serviceaccounts', 'system:serviceaccounts:kube-system', 'system:authenticated'];
  return { username: `system:serviceaccount:kube-system:${name}`, groups };
}

/** Runs the controllers of Kubernetes that a cluster without nodes needs. */
export class Controllers {
  readonly #reconcilers: readonly (GarbageCollector | NamespaceCleaner | CustomResourceCleaner)[];
  readonly #collector: GarbageCollector;
  readonly #expiry: EventExpiry;
  readonly #compaction: HistoryCompaction;
  readonly #context: ClusterContext;
  readonly #stops: (() => void)[] = [];

  /** @param as returns the cluster as a user */
  constructor(context: ClusterContext, as: (user: UserInfo) => Cluster, onError: OnReconcileError) {
    const { store, registry, now } = context;
    this.#context = context;
    this.#expiry = new EventExpiry(store, now);
    this.#compaction = new HistoryCompaction(store);
    this.#collector = new GarbageCollector(store, registry, as(controllerUser('generic-garbage-collector')), onError);
    this.#reconcilers = [
      this.#collector,
      new NamespaceCleaner(store, registry, as(controllerUser('namespace-controller')), now, onError),
      new CustomResourceCleaner(store, registry, as(API_SERVER), onError),
    ];
  }

  start(): void {
    for (const reconciler of this.#reconcilers) {
      reconciler.start();
      this.#stops.push(this.#context.store.onChange(reconciler.onChange));
    }
    this.#stops.push(this.#context.registry.onChange(this.#collector.onKindsChange));
    this.#expiry.start();
    this.#compaction.start();
  }

  async idle(): Promise<void> {
    while (!this.#reconcilers.every(({ queue }) => queue.isIdle)) {
      for (const { queue } of this.#reconcilers) {
        await queue.settled();
      }
    }
  }

  async close(): Promise<void> {
    for (const stop of this.#stops) {
      stop();
    }
    this.#compaction.close();
    await Promise.all([this.#expiry.close(), ...this.#reconcilers.map(({ queue }) => queue.close())]);
  }
}
