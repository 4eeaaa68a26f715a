// Whether API servers would reach a Service of the product, before the first of them is told to ask there.
import type { ObjectCache, SharedCaches } from '../../runtime/index.ts';
import { type Deployment, deploymentsOf } from './ownership.ts';

/**
 * From a pod being available until every node sends connections to it: its EndpointSlice is written, and kube-proxy looks at
 * those at most once a second (`minSyncPeriod`). Milliseconds.
 */
const SPREAD_MS = 3_000;

/** What is asked before a first webhook names a Service. */
export interface Reached {
  /** Whether connections to a Service arrive. Once they do, this stays so for as long as what is behind it is wanted. */
  isReached(service: string): boolean;
  /** Tells that another Service is reached. Returns what ends it. */
  subscribe(listener: () => void): () => void;
}

export interface ReachedServicesOptions {
  readonly caches: SharedCaches;
  /** Of the product. */
  readonly namespace: string;
  /** Default: {@link SPREAD_MS}. */
  readonly spreadMs?: number;
}

/**
 * Which Services of the product are reached: their Deployments, which have the same names, had an available pod, and every node
 * has had the time to hear of it. A process serves some seconds before Kubernetes counts its pod as ready; who is told to ask it
 * before then is refused.
 */
export class ReachedServices implements Reached {
  readonly #deployments: ObjectCache<Deployment>;
  readonly #namespace: string;
  readonly #spreadMs: number;
  /** Until a Service is reached, by name; undefined when it is. */
  readonly #timers = new Map<string, NodeJS.Timeout | undefined>();
  readonly #listeners = new Set<() => void>();

  constructor({ caches, namespace, spreadMs = SPREAD_MS }: ReachedServicesOptions) {
    this.#namespace = namespace;
    this.#spreadMs = spreadMs;
    this.#deployments = deploymentsOf(caches, namespace);
    this.#deployments.subscribe(({ before, after }) => this.#look((after ?? before)?.metadata.name ?? '', after));
  }

  /** Whether there is a Deployment of that name: else somebody else runs what answers. */
  isDeployed(service: string): boolean {
    return this.#deployments.get({ namespace: this.#namespace, name: service }) !== undefined;
  }

  isReached(service: string): boolean {
    return this.#timers.has(service) && this.#timers.get(service) === undefined;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #look(service: string, deployment: Deployment | undefined): void {
    if (deployment === undefined) {
      clearTimeout(this.#timers.get(service));
      this.#timers.delete(service);
    } else if (!this.#timers.has(service) && (deployment.status?.availableReplicas ?? 0) > 0) {
      this.#timers.set(service, setTimeout(() => this.#reached(service), this.#spreadMs).unref());
    }
  }

  #reached(service: string): void {
    this.#timers.set(service, undefined);
    for (const listener of this.#listeners) {
      listener();
    }
  }
}
