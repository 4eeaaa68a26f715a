// Runs pre-validations in the background, so that a slow module source delays only its own policies.
import { Waiting } from '../runtime/index.ts';
import type { PrevalidationRequest, PrevalidationResult } from '../control/index.ts';
import type { ReplicaDirectory } from './replicas/replica-directory.ts';

/** Concurrent pre-validations: below the limit of one replica (128), so that none is rejected. */
export const MAX_PREVALIDATIONS = 96;
/** Concurrent pre-validations of one namespace, so that its slow sources do not delay other namespaces. */
export const MAX_PREVALIDATIONS_PER_NAMESPACE = MAX_PREVALIDATIONS / 4;
/** Delay before a pre-validation is repeated after an unexpected error. Milliseconds. */
const RETRY_MS = 1_000;

/** A pre-validation of one revision of one policy. */
interface Prevalidation {
  readonly purpose: string;
  readonly abort: AbortController;
  result: PrevalidationResult | undefined;
}

/** A pre-validation that waits for a free slot. */
interface Pending {
  /** Undefined for cluster-wide policies. */
  readonly namespace: string | undefined;
  readonly begin: () => void;
}

export interface PrevalidationsOptions {
  readonly replicas: Pick<ReplicaDirectory, 'prevalidate'>;
  /** Called when a policy should be reconciled again: its result is ready, or a retry is due. */
  readonly requeue: (policy: string) => void;
  /** Called after an unexpected error. */
  readonly failed: (policy: string, error: unknown) => void;
}

export class Prevalidations {
  readonly #options: PrevalidationsOptions;
  /** By policy id. */
  readonly #prevalidations = new Map<string, Prevalidation>();
  readonly #pending: Pending[] = [];
  /** Number of running pre-validations by namespace. */
  readonly #running = new Map<string | undefined, number>();

  constructor(options: PrevalidationsOptions) {
    this.#options = options;
  }

  /**
   * The result of a pre-validation, returned once. Undefined while it runs; starts it if necessary.
   *
   * @param purpose distinguishes the pre-validations of one policy: the uid of a revision, and a refresh
   */
  result(
    policy: string,
    purpose: string,
    policyServer: string,
    request: PrevalidationRequest,
  ): PrevalidationResult | undefined {
    const current = this.#prevalidations.get(policy);
    if (current?.purpose === purpose) {
      if (current.result !== undefined) {
        this.#prevalidations.delete(policy);
      }
      return current.result;
    }
    current?.abort.abort();
    const started: Prevalidation = { purpose, abort: new AbortController(), result: undefined };
    this.#prevalidations.set(policy, started);
    void this.#run(policy, started, policyServer, request);
    return undefined;
  }

  /** Aborts the pre-validation of a policy, if there is one. */
  cancel(policy: string): void {
    this.#prevalidations.get(policy)?.abort.abort();
    this.#prevalidations.delete(policy);
  }

  cancelAll(): void {
    for (const policy of this.#prevalidations.keys()) {
      this.cancel(policy);
    }
  }

  async #run(
    policy: string,
    prevalidation: Prevalidation,
    policyServer: string,
    request: PrevalidationRequest,
  ): Promise<void> {
    const { signal } = prevalidation.abort;
    const { namespace } = request.metadata;
    await this.#acquireSlot(namespace);
    try {
      signal.throwIfAborted();
      prevalidation.result = await this.#options.replicas.prevalidate(policyServer, request, signal);
      if (this.#prevalidations.get(policy) === prevalidation) {
        this.#options.requeue(policy);
      }
    } catch (error) {
      if (!signal.aborted) {
        const afterMs = error instanceof Waiting ? error.afterMs : RETRY_MS;
        if (!(error instanceof Waiting)) {
          this.#options.failed(policy, error);
        }
        setTimeout(() => {
          if (this.#prevalidations.get(policy) === prevalidation) {
            this.#prevalidations.delete(policy);
            this.#options.requeue(policy);
          }
        }, afterMs).unref();
      }
    } finally {
      this.#count(namespace, -1);
      this.#fillSlots();
    }
  }

  #acquireSlot(namespace: string | undefined): Promise<void> {
    return new Promise((begin) => {
      this.#pending.push({ namespace, begin });
      this.#fillSlots();
    });
  }

  #fillSlots(): void {
    let total = this.#running.values().reduce((sum, count) => sum + count, 0);
    while (total < MAX_PREVALIDATIONS) {
      const index = this.#pending.findIndex(
        ({ namespace }) =>
          namespace === undefined || (this.#running.get(namespace) ?? 0) < MAX_PREVALIDATIONS_PER_NAMESPACE,
      );
      const [next] = index === -1 ? [] : this.#pending.splice(index, 1);
      if (next === undefined) {
        return;
      }
      this.#count(next.namespace, 1);
      total += 1;
      next.begin();
    }
  }

  #count(namespace: string | undefined, by: number): void {
    const count = (this.#running.get(namespace) ?? 0) + by;
    if (count === 0) {
      this.#running.delete(namespace);
    } else {
      this.#running.set(namespace, count);
    }
  }
}
