import { isOwnBucket, type ObjectKey, type PolicyMatch } from '../../resources/index.ts';

/** A policy, as far as it matters here. */
export interface AskedPolicy {
  readonly id: string;
  readonly kind: string;
  readonly key: ObjectKey;
  readonly policyServer: string;
  /** Whether its status says that it is enforced. Default: it does not. */
  readonly isActive?: boolean;
}

/** What a policy's reconciler has said. */
export interface AskedRecord {
  readonly policy: AskedPolicy;
  /** What is to be asked about. */
  asked: readonly PolicyMatch[];
  /** What may have to be soon. */
  foreseen: PolicyMatch | undefined;
  /** Whether the policy was enforced before: by another policy server, or under another leader. */
  readonly wasEnforced: boolean;
}

/** What is to be asked about policies, by id and by policy server. */
export class AskedRecords {
  readonly #byId = new Map<string, AskedRecord>();
  readonly #byServer = new Map<string, Set<string>>();

  get(id: string): AskedRecord | undefined {
    return this.#byId.get(id);
  }

  /** The record of a policy; an empty one, where there was none. */
  of(policy: AskedPolicy): AskedRecord {
    const { id, policyServer } = policy;
    const known = this.#byId.get(id);
    if (known?.policy.policyServer === policyServer) {
      return known;
    }
    this.delete(id);
    const wasEnforced = policy.isActive === true || known?.wasEnforced === true || (known?.asked.length ?? 0) > 0;
    const record: AskedRecord = { policy, asked: [], foreseen: undefined, wasEnforced };
    this.#byId.set(id, record);
    const ids = this.#byServer.get(policyServer) ?? new Set();
    this.#byServer.set(policyServer, ids.add(id));
    return record;
  }

  /** The record that there was. */
  delete(id: string): AskedRecord | undefined {
    const record = this.#byId.get(id);
    this.#byId.delete(id);
    this.#byServer.get(record?.policy.policyServer ?? '')?.delete(id);
    return record;
  }

  clear(): void {
    this.#byId.clear();
    this.#byServer.clear();
  }

  servers(): Iterable<string> {
    return this.#byServer.keys();
  }

  ofServer(policyServer: string): readonly AskedRecord[] {
    return [...(this.#byServer.get(policyServer) ?? [])].flatMap((id) => this.#byId.get(id) ?? []);
  }

  /**
   * All that is to be asked of a policy server, now or soon. Not in a webhook of its own of what never served: no replica
   * knows it yet, and what is asked there and not known is refused.
   */
  matches(policyServer: string): readonly PolicyMatch[] {
    return this.ofServer(policyServer).flatMap(({ asked, foreseen }) =>
      foreseen === undefined || (asked.length === 0 && isOwnBucket(foreseen.bucket)) ? asked : [...asked, foreseen],
    );
  }
}
