import type { Cluster } from '../../cluster.ts';
import type { Machine } from '../machine.ts';
import { CustomResourceCleaner } from './custom-resource-cleaner.ts';
import { EventExpiry } from './event-expiry.ts';
import { GarbageCollector } from './garbage-collector.ts';
import { NamespaceCleaner } from './namespace-cleaner.ts';
import type { OnReconcileError } from './reconcile-queue.ts';

/** What a cluster does by itself after writes: what a controller manager does to objects without nodes. */
export class Controllers {
  readonly #reconcilers: readonly (GarbageCollector | NamespaceCleaner | CustomResourceCleaner)[];
  readonly #expiry: EventExpiry;
  readonly #machine: Machine;
  readonly #stops: (() => void)[] = [];

  constructor(machine: Machine, cluster: Cluster, onError: OnReconcileError) {
    const { store, registry, now } = machine;
    this.#machine = machine;
    this.#expiry = new EventExpiry(store, now);
    this.#reconcilers = [
      new GarbageCollector(store, registry, cluster, onError),
      new NamespaceCleaner(store, registry, cluster, now, onError),
      new CustomResourceCleaner(store, registry, cluster, onError),
    ];
  }

  start(): void {
    for (const reconciler of this.#reconcilers) {
      reconciler.start();
      this.#stops.push(this.#machine.store.onChange(reconciler.onChange));
    }
    this.#expiry.start();
  }

  async idle(): Promise<void> {
    while (!this.#reconcilers.every(({ queue }) => queue.isIdle)) {
      for (const { queue } of this.#reconcilers) {
        await queue.settled();
      }
    }
  }

  async close(): Promise<void> {
    this.#expiry.close();
    for (const stop of this.#stops) {
      stop();
    }
    for (const { queue } of this.#reconcilers) {
      await queue.close();
    }
  }
}
