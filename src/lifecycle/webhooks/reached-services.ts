// Whether API servers would reach a Service, before the first of them is told to ask there.
import { type KubernetesObject, kubernetesKind, type ResourceType } from '../../resources/index.ts';
import type { ObjectCache, SharedCaches } from '../../runtime/index.ts';
import type { AccessRule } from '../../server/index.ts';

/** What is needed to see where Services lead, in the namespace of the product. */
export const REACHED_SERVICES_RULES: readonly AccessRule[] = [
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
];

/**
 * From an endpoint being ready until every node sends connections there: kube-proxy looks at most once a second
 * (`minSyncPeriod`), and a busy node later. Milliseconds.
 */
const SPREAD_MS = 2_000;
/** The label that an EndpointSlice has of its Service. */
const SERVICE_LABEL = 'kubernetes.io/service-name';

/** `discovery.k8s.io/v1` EndpointSlice, as far as it is looked at. */
interface EndpointSlice extends KubernetesObject {
  readonly endpoints?: readonly { readonly conditions?: { readonly ready?: boolean } }[] | null;
}

/** What is asked before a first webhook names a Service. */
export interface Reached {
  /** Whether connections to a Service arrive. Once they do, this stays so for as long as the Service has any endpoints. */
  isReached(service: string): boolean;
  /** Tells that another Service is reached. Returns what ends it. */
  subscribe(listener: () => void): () => void;
}

export interface ReachedServicesOptions {
  /** Seen with {@link REACHED_SERVICES_RULES}. */
  readonly caches: SharedCaches;
  readonly namespace: string;
  /** Default: {@link SPREAD_MS}. */
  readonly spreadMs?: number;
}

/**
 * Which Services of a namespace are reached: they had a ready endpoint, and every node has had the time to hear of it. A process
 * may serve for some seconds before Kubernetes counts it as ready; who is told to ask it before then is refused.
 */
export class ReachedServices implements Reached {
  readonly #slices: ObjectCache<EndpointSlice>;
  readonly #spreadMs: number;
  /** Until a Service is reached, or undefined when it is. */
  readonly #services = new Map<string, NodeJS.Timeout | undefined>();
  readonly #listeners = new Set<() => void>();

  constructor({ caches, namespace, spreadMs = SPREAD_MS }: ReachedServicesOptions) {
    const type = kubernetesKind('discovery.k8s.io/v1', 'EndpointSlice') as unknown as ResourceType<EndpointSlice>;
    this.#spreadMs = spreadMs;
    this.#slices = caches.cache(type, { namespace, labelSelector: SERVICE_LABEL });
    this.#slices.subscribe(({ before, after }) => this.#look(serviceOf(after ?? before)));
  }

  isReached(service: string): boolean {
    return this.#services.has(service) && this.#services.get(service) === undefined;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #look(service: string): void {
    const slices = this.#slices.list().filter((slice) => serviceOf(slice) === service);
    if (slices.length === 0) {
      clearTimeout(this.#services.get(service));
      this.#services.delete(service);
    } else if (!this.#services.has(service) && slices.some((slice) => hasReadyEndpoint(slice))) {
      const reached = setTimeout(() => {
        this.#services.set(service, undefined);
        for (const listener of this.#listeners) {
          listener();
        }
      }, this.#spreadMs);
      this.#services.set(service, reached.unref());
    }
  }
}

function serviceOf(slice: EndpointSlice | undefined): string {
  return slice?.metadata.labels?.[SERVICE_LABEL] ?? '';
}

/** Where nothing is said, an endpoint is to be taken for ready (the kind's own documentation). */
function hasReadyEndpoint({ endpoints }: EndpointSlice): boolean {
  return (endpoints ?? []).some(({ conditions }) => conditions?.ready !== false);
}
