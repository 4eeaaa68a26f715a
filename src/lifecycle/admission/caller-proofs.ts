// Proves that an address is one of API servers: they are asked to call the webhook with a secret. On the way to pods, networks of
// many clusters give them other addresses than those that the cluster knows: of a bridge, a tunnel, or an agent.
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from '../../cluster/index.ts';
import { CONTROLLER_FIELD_MANAGER, POLICY_REVISIONS, type PolicyRevision } from '../../resources/index.ts';
import { KeptEntries } from '../../values/index.ts';
import type { OwnKindsReview } from './own-kinds-review.ts';

/** The path of the endpoint for reviews with a secret. */
export const CALLERS_PATH = '/prove-caller';
/** How the names of objects begin that the controller creates as a dry run, so that API servers call {@link CALLERS_PATH}. */
export const CALLER_NAME_PREFIX = 'portcullis-caller-';

/** How long a proof holds: the address may be another pod's later. Milliseconds. */
const PROOF_MS = 600_000;
/** Addresses that are remembered: more than a cluster has of API servers. */
const MAX_PROVEN = 1_000;
/** Calls until one reaches this process: of two controllers, a Service gives each every second one. */
const MAX_CALLS = 8;
/** Pause after a call that did not, such as one before API servers know the webhook and the kind. Milliseconds. */
const PAUSE_MS = 100;
/** Nobody guesses it in the seconds for which it holds. Bytes. */
const SECRET_BYTES = 16;

export interface CallerProofsOptions {
  readonly cluster: Pick<Cluster, 'create'>;
  /** The namespace of the product, where the controller may create revisions. */
  readonly namespace: string;
  /** Milliseconds of a monotonic clock. Default: that of the process. */
  readonly now?: () => number;
}

/** Addresses that reviews with a secret came from, which only API servers were given. */
export class CallerProofs {
  readonly #options: CallerProofsOptions;
  readonly #now: () => number;
  readonly #secrets = new Set<string>();
  /** Ends of proofs by address. */
  readonly #proven = new KeptEntries<string, number>({ maxEntries: MAX_PROVEN });

  constructor(options: CallerProofsOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  has(address: string): boolean {
    return (this.#proven.get(address) ?? -Infinity) > this.#now();
  }

  /** Has an API server call the webhook, if it is registered, until a call reaches this process. @throws ClusterError */
  async ask(signal: AbortSignal): Promise<void> {
    for (let calls = 1; calls < MAX_CALLS; calls += 1) {
      if (await this.#call(signal).catch(() => false)) {
        return;
      }
      await sleep(PAUSE_MS, undefined, { signal });
    }
    await this.#call(signal);
  }

  /** Returns whether the call reached this process. */
  async #call(signal: AbortSignal): Promise<boolean> {
    const { cluster, namespace } = this.#options;
    const name = `${CALLER_NAME_PREFIX}${randomBytes(SECRET_BYTES).toString('hex')}`;
    this.#secrets.add(name);
    try {
      const options = { fieldManager: CONTROLLER_FIELD_MANAGER, dryRun: true, signal };
      await cluster.create<PolicyRevision>(POLICY_REVISIONS, neverStored(name, namespace), options);
      return !this.#secrets.has(name);
    } finally {
      this.#secrets.delete(name);
    }
  }

  /** Takes a review that came from an address. */
  receive(address: string, { name }: OwnKindsReview): void {
    if (this.#secrets.delete(name)) {
      this.#proven.set(address, this.#now() + PROOF_MS);
    }
  }
}

/** A valid revision of no policy. */
function neverStored(name: string, namespace: string): PolicyRevision {
  const policy = { apiVersion: 'policies.kubewarden.io/v1', kind: 'ClusterAdmissionPolicy', name, uid: name };
  return {
    apiVersion: 'portcullis.dev/v1',
    kind: 'PolicyRevision',
    metadata: { name, namespace },
    spec: { policy, policyId: name, policyServer: 'none', revision: 1, policyGeneration: 1, snapshot: {} },
  };
}
