// Reads specs of PolicyRevisions with the loader, like entries of a policies file.
import { setImmediate as turn } from 'node:timers/promises';
import { isNamespacedPolicyId } from '../../resources/index.ts';
import type { AdmissionPolicyObject } from '../../resources/index.ts';
import type { UnreadPolicy, ReadPolicy } from '../../evaluation/index.ts';
import { policyEntry } from '../../engine/definition/index.ts';
import { errorText } from '../../values/index.ts';

/**
 * Maximum number of specs sent to the loader in one turn of the event loop: 100 usual ones take half a millisecond, and
 * 100 of the largest that an API server stores (1.5 MiB) fit into one message.
 */
export const MAX_BATCH = 100;

export interface RevisionReaderOptions {
  /** See PolicyEntryOptions. */
  readonly modulesUrl?: URL;
  /** Patterns of host capabilities that policies of namespaces may use. Default: none. */
  readonly namespacedPoliciesCapabilities?: readonly string[];
}

/** Reads specs in another thread than the main one. */
export class RevisionReader {
  readonly #read: (entries: readonly UnreadPolicy[]) => Promise<readonly ReadPolicy[]>;
  readonly #options: RevisionReaderOptions;

  /** @param read reads entries of a policies file; results are in their order */
  constructor(
    read: (entries: readonly UnreadPolicy[]) => Promise<readonly ReadPolicy[]>,
    options: RevisionReaderOptions,
  ) {
    this.#read = read;
    this.#options = options;
  }

  /** Results are in the order of the specs; an invalid spec fails alone. Never rejects. */
  async read(policies: readonly UnreadPolicy[]): Promise<ReadPolicy[]> {
    const batches: Promise<readonly ReadPolicy[]>[] = [];
    for (let start = 0; start < policies.length; start += MAX_BATCH) {
      if (start > 0) {
        await turn();
      }
      batches.push(this.#readBatch(policies.slice(start, start + MAX_BATCH)));
    }
    return (await Promise.all(batches)).flat();
  }

  async #readBatch(policies: readonly UnreadPolicy[]): Promise<readonly ReadPolicy[]> {
    try {
      const entries = policies.map((policy): UnreadPolicy => ({ id: policy.id, spec: this.#entryOf(policy) }));
      return await this.#read(entries);
    } catch (error) {
      if (policies.length > 1) {
        // One of them ended the thread: read each alone, so that only that one fails.
        return (await Promise.all(policies.map((policy) => this.#readBatch([policy])))).flat();
      }
      return policies.map(({ id }) => ({ id, problems: [problemText(error)], isTransient: isThreadEnded(error) }));
    }
  }

  #entryOf({ id, spec }: UnreadPolicy): object {
    const { modulesUrl, namespacedPoliciesCapabilities = [] } = this.#options;
    const hostCapabilities = isNamespacedPolicyId(id) ? namespacedPoliciesCapabilities : undefined;
    const options = {
      ...(modulesUrl === undefined ? {} : { modulesUrl }),
      ...(hostCapabilities === undefined ? {} : { hostCapabilities }),
    };
    try {
      return policyEntry({ spec: spec as AdmissionPolicyObject['spec'] }, options);
    } catch (error) {
      // The field does not matter: the cluster's schema rejects such a spec.
      throw new Error(
        "the policy's spec cannot be read: expected a mapping with a module, or with policies that have one",
        { cause: error },
      );
    }
  }
}

function problemText(error: unknown): string {
  if (error instanceof RangeError) {
    return "the policy's spec cannot be read: it is nested too deeply";
  }
  return errorText(error);
}

function isThreadEnded(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'thread-ended';
}
