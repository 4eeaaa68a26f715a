// Whether API servers can reach a Service of ours, before a first webhook refers to it.
import type { ObjectCache, SharedCaches } from '../../runtime/index.ts';
import { type Deployment, deploymentsOf } from './ownership.ts';

/**
 * Time from a pod's availability until every node routes connections to it: its EndpointSlice is written, and
 * kube-proxy reads those at most once a second (`minSyncPeriod`). Milliseconds.
 */
const SPREAD_MS = 3_000;

/** Reachability of Services, checked before a first webhook refers to one. */
export interface ServiceReachability {
  /** Whether connections to a Service arrive. Stays true until its Deployment is deleted. */
  isReachable(service: string): boolean;
  /** Calls `listener` when another Service becomes reachable. Returns a function that unsubscribes. */
  subscribe(listener: () => void): () => void;
}

export interface ReachableServicesOptions {
  readonly caches: SharedCaches;
  /** Namespace of Portcullis. */
  readonly namespace: string;
  /** Default: {@link SPREAD_MS}. */
  readonly spreadMs?: number;
}

/**
 * The reachable Services: their Deployments, which have the same names, had an available pod for long enough that every
 * node knows it. A webhook to a Service without known pods would reject requests.
 */
export class ReachableServices implements ServiceReachability {
  readonly #deployments: ObjectCache<Deployment>;
  readonly #namespace: string;
  readonly #spreadMs: number;
  /** Timers of Services that are not reachable yet, by name; undefined for reachable ones. */
  readonly #timers = new Map<string, NodeJS.Timeout | undefined>();
  readonly #listeners = new Set<() => void>();

  constructor({ caches, namespace, spreadMs = SPREAD_MS }: ReachableServicesOptions) {
    this.#namespace = namespace;
    this.#spreadMs = spreadMs;
    this.#deployments = deploymentsOf(caches, namespace);
    this.#deployments.subscribe(({ before, after }) => this.#check((after ?? before)?.metadata.name ?? '', after));
  }

  /** Whether the Service has a Deployment; without one, the policy server runs elsewhere. */
  isDeployed(service: string): boolean {
    return this.#deployments.get({ namespace: this.#namespace, name: service }) !== undefined;
  }

  isReachable(service: string): boolean {
    return this.#timers.has(service) && this.#timers.get(service) === undefined;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #check(service: string, deployment: Deployment | undefined): void {
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
