import type { Catalogue } from '../engine/network-policy/index.ts';
import { knownKind, type KubernetesObject } from '../resources/index.ts';
import type { ObjectCache, SharedCaches } from '../runtime/index.ts';
import type { DetectedProvider } from './detect-providers.ts';
import { PROVIDER_CONFIG_MAPS } from './access-rules/network-policy-rules.ts';

export const CONFIG_MAPS = knownKind('v1', 'ConfigMap');

/** ConfigMaps that the builtin catalogue does not name. Nothing waits for them: the right to read them may be missing. */
export class FurtherConfigMaps {
  readonly #sharedCaches: SharedCaches;
  readonly #onChange: () => void;
  readonly #caches = new Map<string, ObjectCache>();

  /** @param onChange called when a setting may have changed */
  constructor(caches: SharedCaches, onChange: () => void) {
    this.#sharedCaches = caches;
    this.#onChange = onChange;
  }

  list(): readonly KubernetesObject[] {
    return [...this.#caches.values()].flatMap((cache) => cache.list());
  }

  /** Watches the ConfigMaps of detected providers. */
  watch(detected: readonly DetectedProvider[], catalogue: Catalogue): void {
    const names = detected.flatMap(({ name }) => catalogue.find(name)?.detect?.configMap ?? []);
    for (const name of names) {
      if (!PROVIDER_CONFIG_MAPS.includes(name) && !this.#caches.has(name)) {
        const cache = this.#sharedCaches.cache(CONFIG_MAPS, { fieldSelector: `metadata.name=${name}` });
        this.#caches.set(name, cache);
        cache.subscribe(this.#onChange);
      }
    }
  }
}
