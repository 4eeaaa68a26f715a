import type { ContextAwareResource } from '../../resources/index.ts';
import type { HostPort, InventoryMode } from './host-port.ts';
import { buildInventory } from './inventory.ts';
import { RevisionCache } from './revision-cache.ts';

/** Maximum number of cached inventories per thread. Each contains all objects of its kinds. */
export const MAX_KEPT_INVENTORIES = 8;

/** Caches inventories until one of their objects changes: most requests come between two changes. */
export class InventoryCache {
  readonly #port: HostPort;
  readonly #kept = new RevisionCache({ maxEntries: MAX_KEPT_INVENTORIES });

  constructor(port: HostPort) {
    this.#port = port;
  }

  /** JSON text. */
  get(mode: InventoryMode, resources: readonly ContextAwareResource[]): string {
    const key = JSON.stringify([mode, ...resources.map(({ apiVersion, kind }) => [apiVersion, kind])]);
    const revision = this.#port.revisionOf?.(resources);
    return this.#kept.get(key, revision, () => buildInventory(this.#port, mode, resources));
  }
}
