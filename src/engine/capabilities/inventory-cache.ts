import type { HostPort, InventoryMode } from '../host-port.ts';
import type { ContextAwareResource } from '../policy-definition.ts';
import { buildInventory } from './inventory.ts';

/** Inventories that a thread keeps: of so many sets of kinds. Each is as large as all objects of its kinds. */
export const MAX_KEPT_INVENTORIES = 8;

interface Kept {
  readonly revision: string;
  readonly json: string;
}

/** Builds inventories, and keeps them while no object in them changes: most requests come between two changes. */
export class InventoryCache {
  readonly #port: HostPort;
  readonly #kept = new Map<string, Kept>();

  constructor(port: HostPort) {
    this.#port = port;
  }

  /** JSON text. */
  get(mode: InventoryMode, resources: readonly ContextAwareResource[]): string {
    // Asked before the objects: what is kept may be newer than its revision says, never older.
    const revision = this.#port.revisionOf?.(resources);
    const key = JSON.stringify([mode, ...resources.map(({ apiVersion, kind }) => [apiVersion, kind])]);
    const kept = this.#kept.get(key);
    if (revision !== undefined && kept?.revision === revision) {
      return kept.json;
    }
    const json = buildInventory(this.#port, mode, resources);
    this.#kept.delete(key);
    if (revision !== undefined) {
      this.#kept.set(key, { revision, json });
      const [oldest] = this.#kept.keys();
      if (this.#kept.size > MAX_KEPT_INVENTORIES && oldest !== undefined) {
        this.#kept.delete(oldest);
      }
    }
    return json;
  }
}
