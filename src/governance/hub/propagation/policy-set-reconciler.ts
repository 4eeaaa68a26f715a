import type { Cluster } from '../../../cluster/index.ts';
import { findCondition, type ObjectKey, type Policy, type PolicySet, READY } from '../../../resources/index.ts';
import type { EventSink, ObjectCache } from '../../../runtime/index.ts';
import { OwnObjects } from '../../policy/own-objects.ts';
import { POLICY_REASONS } from '../../policy/policy-reasons.ts';
import { policySetStatus } from './policy-set-status.ts';

export interface PolicySetOptions {
  readonly cluster: Cluster;
  readonly policies: ObjectCache<Policy>;
  readonly policySets: ObjectCache<PolicySet>;
  readonly events: EventSink;
}

/** Keeps the status of PolicySets. */
export class PolicySetReconciler {
  readonly #policies: ObjectCache<Policy>;
  readonly #sets: OwnObjects<PolicySet>;
  readonly #events: EventSink;

  constructor({ cluster, policies, policySets, events }: PolicySetOptions) {
    this.#events = events;
    this.#policies = policies;
    this.#sets = new OwnObjects(cluster, policySets);
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<void> {
    const set = this.#sets.get(key);
    if (set === undefined || set.metadata.deletionTimestamp !== undefined) {
      return;
    }
    const { namespace = '' } = key;
    const policyOf = (name: string): Policy | undefined => this.#policies.get({ namespace, name });
    const status = policySetStatus(set, policyOf, Date.now());
    const isChanged = await this.#sets.writeStatus(set, status, signal);
    const ready = findCondition(status.conditions, READY);
    if (isChanged && ready?.reason === POLICY_REASONS.policyNotFound) {
      this.#events.event(set, 'Warning', POLICY_REASONS.policyNotFound, ready.message);
    }
  }
}
