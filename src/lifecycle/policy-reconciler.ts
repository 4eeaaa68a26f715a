// Makes policies of one kind serve on one policy server, has the API server ask about them, and says in their status what
// came of it.
import { isDeepStrictEqual } from 'node:util';
import { ApiError, type Cluster } from '../cluster/index.ts';
import {
  type JsonObject,
  keyOf,
  type KubernetesObject,
  type ObjectKey,
  type ResourceDefinition,
  type ResourceType,
} from '../resources/index.ts';
import {
  type EventSink,
  generationChanged,
  type ObjectCache,
  type ObjectIndex,
  watch,
  type Watch,
} from '../runtime/index.ts';
import { type AdmissionPolicyObject, policyId } from './admission-policy.ts';
import { policyEntry, type PolicyEntryOptions } from './policy-entry.ts';
import type { PolicySet, WantedPolicy } from './policy-set.ts';
import { policyStatus } from './policy-status.ts';
import { isMutating, policyOf, webhookConfiguration, type WebhookTarget } from './webhook-configuration.ts';

/** Who owns the fields of what controllers write. */
export const FIELD_MANAGER = 'portcullis-controller';

/** Phases that users hear of by an event, and whether they are bad news. */
const EVENT_TYPES: ReadonlyMap<string, 'Normal' | 'Warning'> = new Map([
  ['Active', 'Normal'],
  ['Degraded', 'Warning'],
  ['Error', 'Warning'],
]);

export interface PolicyReconcilerOptions extends PolicyEntryOptions {
  readonly cluster: Cluster;
  readonly policies: ObjectCache<AdmissionPolicyObject>;
  readonly validating: ObjectCache;
  readonly mutating: ObjectCache;
  readonly set: PolicySet;
  /** Where the API server reaches the policy server. */
  readonly target: WebhookTarget;
  readonly events: EventSink;
}

export class PolicyReconciler {
  readonly #kind: ResourceDefinition;
  readonly #options: PolicyReconcilerOptions;
  readonly #byId: ObjectIndex<AdmissionPolicyObject>;

  constructor(kind: ResourceDefinition, options: PolicyReconcilerOptions) {
    this.#kind = kind;
    this.#options = options;
    this.#byId = options.policies.index((policy) => [policyId(policy)]);
  }

  /** The policies themselves, and the webhook configurations that were made for them. */
  watches(): readonly Watch[] {
    const { policies, validating, mutating } = this.#options;
    const keys = (configuration: KubernetesObject): readonly ObjectKey[] => {
      const key = policyOf(configuration);
      return key === undefined || this.#idOf(key) !== configuration.metadata.name ? [] : [key];
    };
    return [watch(policies, { when: [generationChanged] }), watch(validating, { keys }), watch(mutating, { keys })];
  }

  /** Everything that shall serve now. */
  wanted(): readonly WantedPolicy[] {
    return this.#options.policies
      .list()
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .map((policy) => this.#wantedOf(policy));
  }

  /** The policy of an id, if it is of this kind. */
  keyOf(id: string): ObjectKey | undefined {
    const [policy] = this.#byId.get(id);
    return policy === undefined ? undefined : keyOf(policy);
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<void> {
    const { set, policies } = this.#options;
    const policy = policies.get(key);
    const id = this.#idOf(key);
    if (policy === undefined || policy.metadata.deletionTimestamp !== undefined) {
      // First nobody asks any more, then nobody answers.
      await this.#dismiss('Validating', id, signal);
      await this.#dismiss('Mutating', id, signal);
      await set.remove(id);
      return;
    }
    // First somebody answers, then the API server asks.
    await set.put(this.#wantedOf(policy));
    await this.#enforce(policy, id, signal);
    await this.#report(policy, id, signal);
  }

  #idOf(key: ObjectKey): string {
    return policyId({ kind: this.#kind.kind, metadata: key });
  }

  #wantedOf(policy: AdmissionPolicyObject): WantedPolicy {
    return {
      id: policyId(policy),
      entry: policyEntry(policy, this.#options),
      generation: policy.metadata.generation ?? 0,
    };
  }

  async #enforce(policy: AdmissionPolicyObject, id: string, signal: AbortSignal): Promise<void> {
    const wanted = webhookConfiguration(policy, this.#options.target);
    const [kind, other] = isMutating(policy)
      ? (['Mutating', 'Validating'] as const)
      : (['Validating', 'Mutating'] as const);
    const cache = this.#cacheOf(kind);
    const actual = cache.get({ name: id });
    if (actual === undefined || !covers(actual, wanted)) {
      const body = wanted as unknown as JsonObject;
      await this.#options.cluster.patch(
        cache.type,
        { name: id },
        { type: 'apply', body, force: true },
        { fieldManager: FIELD_MANAGER, signal },
      );
    }
    await this.#dismiss(other, id, signal);
  }

  async #dismiss(kind: 'Validating' | 'Mutating', id: string, signal: AbortSignal): Promise<void> {
    const cache = this.#cacheOf(kind);
    if (cache.get({ name: id }) !== undefined) {
      await unlessGone(this.#options.cluster.delete(cache.type, { name: id }, { signal }));
    }
  }

  #cacheOf(kind: 'Validating' | 'Mutating'): ObjectCache {
    return kind === 'Mutating' ? this.#options.mutating : this.#options.validating;
  }

  async #report(policy: AdmissionPolicyObject, id: string, signal: AbortSignal): Promise<void> {
    const { cluster, set, events } = this.#options;
    const before = policy.status;
    const status = policyStatus(policy, set.get(id), Date.now());
    if (isDeepStrictEqual({ ...before, ...status }, before)) {
      return;
    }
    const body = { status } as unknown as JsonObject;
    const type: ResourceType = this.#kind;
    const options = { subresource: 'status', fieldManager: FIELD_MANAGER, signal };
    await unlessGone(cluster.patch(type, keyOf(policy), { type: 'merge', body }, options));
    const eventType = EVENT_TYPES.get(status.phase ?? '');
    if (eventType !== undefined && (before?.phase !== status.phase || before?.reason !== status.reason)) {
      events.event(policy, eventType, status.reason ?? '', status.message ?? '');
    }
  }
}

/** Whether everything that is wanted is there; the server adds defaults. */
function covers(actual: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) {
    return (
      Array.isArray(actual) &&
      actual.length === wanted.length &&
      wanted.every((item, index) => covers(actual[index], item))
    );
  }
  if (typeof wanted === 'object' && wanted !== null) {
    const fields = actual as Readonly<Record<string, unknown>> | null | undefined;
    return (
      typeof fields === 'object' &&
      fields !== null &&
      Object.entries(wanted).every(([key, value]) => Object.hasOwn(fields, key) && covers(fields[key], value))
    );
  }
  return actual === wanted;
}

/** What somebody else has deleted meanwhile needs nothing more. */
async function unlessGone(request: Promise<unknown>): Promise<void> {
  try {
    await request;
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 404) {
      throw error;
    }
  }
}
