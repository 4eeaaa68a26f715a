// The Lease of a replica that runs in no pod: it says that the process lives, and owns what the process has reported.
import { ApiError, Backoff, unlessGone } from '../../cluster/index.ts';
import type { Cluster } from '../../cluster/index.ts';
import { LEASES, pause, SYSTEM_CLOCK } from '../../runtime/index.ts';
import type { Lease, LeaseSpec } from '../../runtime/index.ts';
import type { Logger } from '../../log/index.ts';
import { errorText } from '../../values/index.ts';

/** How often it is renewed. Milliseconds. */
export const LEASE_RENEW_MS = 5_000;
/** Who was not renewed for this long is gone: two renewals may be late. Seconds. */
export const LEASE_DURATION_SECONDS = 15;
/** Time for one request. Milliseconds. */
const REQUEST_TIMEOUT_MS = 4_000;

export interface ReplicaLeaseOptions {
  readonly cluster: Pick<Cluster, 'get' | 'create' | 'update' | 'delete'>;
  readonly namespace: string;
  readonly name: string;
  /** Told of the uid that the Lease has, and of another one when somebody deleted it. */
  readonly held: (uid: string) => void;
  readonly renewMs: number;
  readonly log: Logger;
}

/** Creates the Lease and renews it. Nobody competes for it: the name is the replica's own. */
export class ReplicaLease {
  readonly #options: ReplicaLeaseOptions;
  #lease: Lease | undefined;
  #isFailing = false;

  constructor(options: ReplicaLeaseOptions) {
    this.#options = options;
  }

  /** Until `signal` is aborted, whatever happens. Never rejects. */
  async start(signal: AbortSignal): Promise<void> {
    const { held, renewMs, log } = this.#options;
    const backoff = new Backoff();
    while (!signal.aborted) {
      let waitMs = renewMs;
      try {
        const before = this.#lease?.metadata.uid;
        this.#lease = await this.#hold(AbortSignal.any([signal, AbortSignal.timeout(REQUEST_TIMEOUT_MS)]));
        const { uid } = this.#lease.metadata;
        if (uid !== undefined && uid !== before) {
          held(uid);
        }
        backoff.reset();
        this.#isFailing = false;
      } catch (error) {
        waitMs = Math.min(waitMs, backoff.failed(SYSTEM_CLOCK.now()));
        if (!this.#isFailing && !signal.aborted) {
          this.#isFailing = true;
          log.warn({ error: errorText(error) }, "the replica's Lease could not be renewed, trying again");
        }
      }
      await pause(SYSTEM_CLOCK, waitMs, signal);
    }
  }

  /** Deletes it. Rejects when that fails; it expires then. */
  async release(signal: AbortSignal): Promise<void> {
    const { cluster, namespace, name } = this.#options;
    const uid = this.#lease?.metadata.uid;
    if (uid !== undefined) {
      await unlessStale(cluster.delete(LEASES, { namespace, name }, { preconditions: { uid }, signal }));
    }
  }

  async #hold(signal: AbortSignal): Promise<Lease> {
    if (this.#lease !== undefined) {
      try {
        return await this.#renew(this.#lease, signal);
      } catch (error) {
        if (!isStale(error)) {
          throw error;
        }
        // Somebody changed or deleted it.
      }
    }
    const { cluster, namespace, name } = this.#options;
    const renewed = await unlessGone(
      cluster.get(LEASES, { namespace, name }, { signal }).then((lease) => this.#renew(lease, signal)),
    );
    if (renewed !== undefined) {
      return renewed;
    }
    const metadata = { namespace, name };
    return await cluster.create<Lease>(LEASES, { ...HEAD, metadata, spec: this.#spec(undefined) }, { signal });
  }

  async #renew(lease: Lease, signal: AbortSignal): Promise<Lease> {
    const spec = this.#spec(lease.spec);
    return await this.#options.cluster.update<Lease>(LEASES, { ...lease, ...HEAD, spec }, { signal });
  }

  #spec(before: LeaseSpec | undefined): LeaseSpec {
    const { name } = this.#options;
    // metav1.MicroTime
    const now = `${new Date().toISOString().slice(0, -1)}000Z`;
    const isOurs = before?.holderIdentity === name && this.#lease !== undefined;
    return {
      ...before,
      holderIdentity: name,
      leaseDurationSeconds: LEASE_DURATION_SECONDS,
      acquireTime: isOurs ? (before.acquireTime ?? now) : now,
      renewTime: now,
    };
  }
}

const HEAD = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' };

/** Whether the object is no longer the one that was known. */
export function isStale(error: unknown): boolean {
  return error instanceof ApiError && ['Conflict', 'NotFound', 'AlreadyExists'].includes(error.reason);
}

/** Waits for a deletion; what is gone already, or is another one by now, needs none. */
export async function unlessStale(deletion: Promise<unknown>): Promise<void> {
  try {
    await deletion;
  } catch (error) {
    if (!isStale(error)) {
      throw error;
    }
  }
}
