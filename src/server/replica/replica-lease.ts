// The Lease of a replica outside of a pod: shows that the process is alive, and owns the replica's objects.
import { ApiError, Backoff, unlessGone } from '../../cluster/index.ts';
import type { Cluster } from '../../cluster/index.ts';
import { LEASES, pause, SYSTEM_CLOCK } from '../../runtime/index.ts';
import type { Lease, LeaseSpec } from '../../runtime/index.ts';
import type { Logger } from '../../log/index.ts';
import { errorText } from '../../values/index.ts';

/** Renewal interval. Milliseconds. */
export const LEASE_RENEW_MS = 5_000;
/** A Lease that is not renewed for this long is expired: two renewals may be late. Seconds. */
const LEASE_DURATION_SECONDS = 15;
/** Timeout of one request. Milliseconds. */
const REQUEST_TIMEOUT_MS = 4_000;

export interface ReplicaLeaseOptions {
  readonly cluster: Pick<Cluster, 'get' | 'create' | 'update' | 'delete'>;
  readonly namespace: string;
  readonly name: string;
  /** Called with the uid of the Lease, again when it was deleted and recreated. */
  readonly onHeld: (uid: string) => void;
  readonly renewMs: number;
  readonly log: Logger;
}

/** Creates and renews the Lease. The name is unique to the replica, so there is no competition. */
export class ReplicaLease {
  readonly #options: ReplicaLeaseOptions;
  #lease: Lease | undefined;
  #isFailing = false;

  constructor(options: ReplicaLeaseOptions) {
    this.#options = options;
  }

  /** Runs until `signal` is aborted. Never rejects. */
  async start(signal: AbortSignal): Promise<void> {
    const { onHeld, renewMs, log } = this.#options;
    const backoff = new Backoff();
    while (!signal.aborted) {
      let waitMs = renewMs;
      try {
        const before = this.#lease?.metadata.uid;
        this.#lease = await this.#hold(AbortSignal.any([signal, AbortSignal.timeout(REQUEST_TIMEOUT_MS)]));
        const { uid } = this.#lease.metadata;
        if (uid !== undefined && uid !== before) {
          onHeld(uid);
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

  /** Deletes the Lease. Rejects when that fails; the Lease then expires. */
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
        // It was changed or deleted by another client.
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

/** Whether the object differs from the known one. */
export function isStale(error: unknown): boolean {
  return error instanceof ApiError && ['Conflict', 'NotFound', 'AlreadyExists'].includes(error.reason);
}

/** Waits for a deletion; ignores that the object is gone or replaced already. */
export async function unlessStale(deletion: Promise<unknown>): Promise<void> {
  try {
    await deletion;
  } catch (error) {
    if (!isStale(error)) {
      throw error;
    }
  }
}
