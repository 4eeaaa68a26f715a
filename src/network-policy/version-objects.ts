// The objects of network providers that have their versions, for images by digest. Watched once they are needed.
import type { Logger } from 'pino';
import type { Cluster } from '../cluster/index.ts';
import type { Catalogue, VersionObject } from '../engine/network-policy/index.ts';
import { isJsonObject, type KubernetesObject, own } from '../resources/index.ts';
import type { ObjectCache, SharedCaches } from '../runtime/index.ts';
import { errorText } from '../values/index.ts';
import type { DetectedProvider } from './detect-providers.ts';

export interface VersionObjectsOptions {
  readonly cluster: Pick<Cluster, 'discovery'>;
  readonly caches: SharedCaches;
  readonly log: Logger;
  /** Called when a version may have changed. */
  readonly onChange: () => void;
}

export class VersionObjects {
  readonly #options: VersionObjectsOptions;
  readonly #caches = new Map<string, ObjectCache>();

  constructor(options: VersionObjectsOptions) {
    this.#options = options;
  }

  list(): readonly KubernetesObject[] {
    return [...this.#caches.values()].flatMap((cache) => cache.list());
  }

  /** Watches the objects of providers whose agents show no version. A cluster without the kind is asked again at the next call. */
  async watch(detected: readonly DetectedProvider[], catalogue: Catalogue): Promise<void> {
    for (const { name, version } of detected) {
      const object = catalogue.find(name)?.detect?.object;
      if (version === undefined && object !== undefined && !this.#caches.has(object.resource)) {
        await this.#start(object);
      }
    }
  }

  async #start({ apiVersion, kind, resource, name, field }: VersionObject): Promise<void> {
    const { cluster, caches, log, onChange } = this.#options;
    try {
      const type = await cluster.discovery.find(apiVersion, kind);
      if (type === undefined || this.#caches.has(resource)) {
        return;
      }
      const [part = ''] = field.split('.');
      const cache = caches.cache(type, {
        fieldSelector: `metadata.name=${name}`,
        transform: (whole) => withPart(whole, part),
      });
      this.#caches.set(resource, cache);
      cache.subscribe(onChange);
    } catch (error) {
      log.warn({ resource, error: errorText(error) }, 'the version of a network provider cannot be read');
    }
  }
}

/** The object with one of its fields. Others, such as times of heartbeats, change without end. */
function withPart({ apiVersion, kind, metadata, ...fields }: KubernetesObject, part: string): KubernetesObject {
  const { name = '', uid = '', resourceVersion = '' } = metadata;
  const value = isJsonObject(fields) ? own(fields, part) : undefined;
  return {
    apiVersion,
    kind,
    metadata: { name, uid, resourceVersion },
    ...(value === undefined ? {} : { [part]: value }),
  };
}
