import { isOwnBucket, type ObjectKey, type PolicyMatch, webhookMatches } from '../../resources/index.ts';

/** Identifies a policy and its policy server. */
export interface PolicyReference {
  readonly id: string;
  readonly kind: string;
  readonly key: ObjectKey;
  readonly policyServer: string;
  /** Whether the policy's condition PolicyActive is True. Default: false. */
  readonly isActive?: boolean;
}

/** The webhooks that a policy needs, as its reconciler reported last. */
export interface EnforcementRecord {
  readonly policy: PolicyReference;
  /** The matches that webhooks must cover. */
  matches: readonly PolicyMatch[];
  /** The match of a revision that may serve soon, covered in advance. */
  upcoming: PolicyMatch | undefined;
  /** Whether the policy was enforced before, by another policy server or under another leader. */
  readonly wasEnforced: boolean;
}

/** Enforcement records by policy id and by policy server. */
export class EnforcementRecords {
  readonly #byId = new Map<string, EnforcementRecord>();
  readonly #byServer = new Map<string, Set<string>>();

  get(id: string): EnforcementRecord | undefined {
    return this.#byId.get(id);
  }

  /** The record of a policy, created if necessary. */
  of(policy: PolicyReference): EnforcementRecord {
    const { id, policyServer } = policy;
    const known = this.#byId.get(id);
    if (known?.policy.policyServer === policyServer) {
      return known;
    }
    this.delete(id);
    const wasEnforced = policy.isActive === true || known?.wasEnforced === true || (known?.matches.length ?? 0) > 0;
    const record: EnforcementRecord = { policy, matches: [], upcoming: undefined, wasEnforced };
    this.#byId.set(id, record);
    const ids = this.#byServer.get(policyServer) ?? new Set();
    this.#byServer.set(policyServer, ids.add(id));
    return record;
  }

  /** @returns the deleted record */
  delete(id: string): EnforcementRecord | undefined {
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

  ofServer(policyServer: string): readonly EnforcementRecord[] {
    return [...(this.#byServer.get(policyServer) ?? [])].flatMap((id) => this.#byId.get(id) ?? []);
  }

  /**
   * The matches that the webhooks of a policy server must cover, now or soon. A policy that never served gets no webhook of
   * its own in advance: no replica knows the policy yet, and requests for an unknown policy are rejected.
   */
  matches(policyServer: string): readonly PolicyMatch[] {
    return this.ofServer(policyServer)
      .flatMap(({ matches, upcoming }) =>
        upcoming === undefined || (matches.length === 0 && isOwnBucket(upcoming.bucket))
          ? matches
          : [...matches, upcoming],
      )
      .flatMap(webhookMatches);
  }
}
