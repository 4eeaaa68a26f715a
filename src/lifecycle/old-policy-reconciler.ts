// Makes policies of one kind serve on one policy server, has the API server ask about them, and says in their status what
// came of it.
import { isDeepStrictEqual } from 'node:util';
import { ApiError, type Cluster, isNotFound } from '../cluster/index.ts';
import {
  type JsonObject,
  keyOf,
  type KubernetesObject,
  type ObjectKey,
  type PolicyStatus,
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
import { type AdmissionPolicyObject, policyId } from '../resources/index.ts';
import { policyEntry, type PolicyEntryOptions } from '../server/index.ts';
import type { PolicySet, WantedPolicy } from './policy-set.ts';
import { policyStatus } from './policy-status.ts';
import {
  corrected,
  isMutating,
  policyOf,
  webhookConfiguration,
  type WebhookConfiguration,
  type WebhookTarget,
} from './webhook-configuration.ts';

/** Who owns the fields of what controllers write. */
export const FIELD_MANAGER = 'portcullis-controller';

/** Phases that users hear of by an event, and whether they are bad news. */
const EVENT_TYPES: ReadonlyMap<string, 'Normal' | 'Warning'> = new Map([
  ['Active', 'Normal'],
  ['Degraded', 'Warning'],
  ['Error', 'Warning'],
]);

/** How an API server says that it understood a configuration, and will not have it. */
const REFUSALS: ReadonlySet<number> = new Set([400, 403, 422]);

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
  /** What was written about the policy as the cache has it: the cache learns of that later. */
  readonly #reported = new WeakMap<AdmissionPolicyObject, PolicyStatus>();

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
    const refusal = await this.#enforce(policy, id, signal);
    await this.#report(policy, id, refusal?.message, signal);
    if (refusal?.code === 403) {
      // Nothing tells of rights that are given later.
      throw refusal;
    }
  }

  #idOf(key: ObjectKey): string {
    return policyId({ kind: this.#kind.kind, metadata: key });
  }

  #wantedOf(policy: AdmissionPolicyObject): WantedPolicy {
    return {
      id: policyId(policy),
      entry: policyEntry(policy, this.#options),
      generation: generationOf(policy),
    };
  }

  /** Has the API server ask about the policy. Resolves with its refusal when it understood, and will not. */
  async #enforce(policy: AdmissionPolicyObject, id: string, signal: AbortSignal): Promise<ApiError | undefined> {
    const wanted = webhookConfiguration(policy, this.#options.target);
    const [kind, other] = isMutating(policy)
      ? (['Mutating', 'Validating'] as const)
      : (['Validating', 'Mutating'] as const);
    try {
      await this.#configure(this.#cacheOf(kind), wanted, signal);
    } catch (error) {
      if (error instanceof ApiError && REFUSALS.has(error.code)) {
        return error;
      }
      throw error;
    }
    await this.#dismiss(other, id, signal);
    return undefined;
  }

  async #configure(cache: ObjectCache, wanted: WebhookConfiguration, signal: AbortSignal): Promise<void> {
    const { cluster } = this.#options;
    const options = { fieldManager: FIELD_MANAGER, signal };
    const key = keyOf(wanted);
    const actual = cache.get(key);
    if (actual === undefined) {
      // One that lost its label is not in the cache, and taken over.
      const body = wanted as unknown as JsonObject;
      await cluster.patch(cache.type, key, { type: 'apply', body, force: true }, options);
      return;
    }
    const change = corrected(actual, wanted);
    if (change !== undefined) {
      // Replaced, not applied: what others added is theirs, and applying leaves it.
      await cluster.update(cache.type, change, options);
    }
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

  async #report(
    policy: AdmissionPolicyObject,
    id: string,
    refusal: string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { cluster, set, events, validating, mutating } = this.#options;
    const before = this.#reported.get(policy) ?? policy.status;
    const isAsked =
      refusal === undefined || [validating, mutating].some((cache) => cache.get({ name: id }) !== undefined);
    const facts = { generation: generationOf(policy), served: set.get(id), isAsked, refusal };
    const status = policyStatus(facts, before, Date.now());
    if (isDeepStrictEqual({ ...before, ...status }, before)) {
      return;
    }
    const body = { status } as unknown as JsonObject;
    const type: ResourceType = this.#kind;
    const options = { subresource: 'status', fieldManager: FIELD_MANAGER, signal };
    await unlessGone(cluster.patch(type, keyOf(policy), { type: 'merge', body }, options));
    this.#reported.set(policy, { ...before, ...status });
    const eventType = EVENT_TYPES.get(status.phase ?? '');
    if (eventType !== undefined && (before?.phase !== status.phase || before?.reason !== status.reason)) {
      events.event(policy, eventType, status.reason ?? '', status.message ?? '');
    }
  }
}

function generationOf({ metadata }: AdmissionPolicyObject): number {
  return metadata.generation ?? 0;
}

/** What somebody else has deleted meanwhile needs nothing more. */
async function unlessGone(request: Promise<unknown>): Promise<void> {
  try {
    await request;
  } catch (error) {
    if (!isNotFound(error)) {
      throw error;
    }
  }
}
