import { TaskLimit } from '../../modules/index.ts';
import { NotBegun } from './shared-answers.ts';

/** Transfers from one registry for one party: a registry that hangs holds no more than these. */
export const MAX_TRANSFERS_PER_HOST = 4;
/** Transfers for all policies of the cluster. */
export const MAX_CLUSTER_TRANSFERS = 16;
/** Transfers for the policies of one namespace. */
export const MAX_NAMESPACE_TRANSFERS = 4;
/** Transfers for the policies of all namespaces. */
export const MAX_TENANT_TRANSFERS = 16;
/** Transfers of one party that run or wait; others fail at once. */
export const MAX_PENDING_TRANSFERS = 64;

/** Who causes a transfer: policies of the cluster (undefined), or those of one namespace. */
type Party = string | undefined;

/** Limits concurrent transfers, so that neither a registry nor a tenant can hold those of others. */
export class TransferSlots {
  readonly #slots = new Map<string, TaskLimit>();
  readonly #pending = new Map<Party, number>();

  /**
   * Runs a transfer when there is room for it.
   * @throws NotBegun if too many of the party wait
   */
  async run<T>(host: string, party: Party, work: () => Promise<T>): Promise<T> {
    const pending = this.#pending.get(party) ?? 0;
    if (pending >= MAX_PENDING_TRANSFERS) {
      throw new NotBegun(
        `too many images are being read: expected at most ${MAX_PENDING_TRANSFERS} at a time. Try again later`,
      );
    }
    this.#pending.set(party, pending + 1);
    try {
      // A transfer that waits for a slow host must not hold a slot that others could use: the slot of the host comes first.
      return await this.#within(`host ${party ?? ''} ${host}`, MAX_TRANSFERS_PER_HOST, () =>
        party === undefined
          ? this.#within('cluster', MAX_CLUSTER_TRANSFERS, work)
          : this.#within(`namespace ${party}`, MAX_NAMESPACE_TRANSFERS, () =>
              this.#within('tenants', MAX_TENANT_TRANSFERS, work),
            ),
      );
    } finally {
      const left = (this.#pending.get(party) ?? 1) - 1;
      if (left === 0) {
        this.#pending.delete(party);
      } else {
        this.#pending.set(party, left);
      }
    }
  }

  async #within<T>(key: string, limit: number, work: () => Promise<T>): Promise<T> {
    const slots = this.#slots.get(key) ?? new TaskLimit(limit);
    this.#slots.set(key, slots);
    try {
      return await slots.run(work);
    } finally {
      if (slots.isUnused) {
        this.#slots.delete(key);
      }
    }
  }
}
