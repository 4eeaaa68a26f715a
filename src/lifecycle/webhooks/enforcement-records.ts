import { isOwnBucket, type ObjectKey, type PolicyMatch, webhookMatches } from '../../resources/index.ts';
import type { WebhookState } from '../rollout/webhook-state.ts';

/** Identifies a policy and its policy server. */
export interface PolicyReference {
  readonly id: string;
  readonly kind: string;
  readonly key: ObjectKey;
  readonly policyServer: string;
  /** Whether the policy's condition PolicyActive is True. Default: false. */
  readonly isActive?: boolean;
}

/** A policy that is reconciled again when its webhook is not what it was told. */
export interface ToldPolicy {
  readonly policy: PolicyReference;
  /** What its last reconciliation was told of the webhook that it wants; undefined: it has asked for none so far. */
  told: WebhookState | undefined;
}

/** The webhooks that a policy needs, as its reconciler reported last. */
export interface EnforcementRecord extends ToldPolicy {
  /** The matches that webhooks must cover. */
  matches: readonly PolicyMatch[];
  /** The match of a revision that may serve soon, covered in advance. */
  upcoming: PolicyMatch | undefined;
  /** Whether the policy was enforced before, by another policy server or under another leader. */
  readonly wasEnforced: boolean;
}

/** Enforcement records by policy id and by policy server. */
export class EnforcementRecords {
  /** Policies that are not enforced any more, and had a webhook of their own at their last reconciliation. By id. */
  readonly removed = new Map<string, ToldPolicy>();
  readonly #byId = new Map<string, EnforcementRecord>();
  readonly #byServer = new Map<string, Set<string>>();

  get(id: string): EnforcementRecord | undefined {
    return this.#byId.get(id);
  }

  /** The record of a policy, created if necessary. */
  of(policy: PolicyReference): EnforcementRecord {
    const { id, policyServer } = policy;
    this.removed.delete(id);
    const known = this.#byId.get(id);
    if (known?.policy.policyServer === policyServer) {
      return known;
    }
    this.delete(id);
    const wasEnforced = policy.isActive === true || known?.wasEnforced === true || (known?.matches.length ?? 0) > 0;
    const record: EnforcementRecord = { policy, told: undefined, matches: [], upcoming: undefined, wasEnforced };
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
    this.removed.clear();
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
