// What the API server asks about each policy: one webhook configuration per policy, written only when it differs.
import { isDeepStrictEqual } from 'node:util';
import { ApiError, type Cluster, unlessGone } from '../cluster/index.ts';
import {
  type AdmissionPolicyObject,
  type AdmissionPolicySpec,
  type JsonObject,
  keyOf,
  policyId,
} from '../resources/index.ts';
import type { ObjectCache } from '../runtime/index.ts';
import { FIELD_MANAGER } from './field-manager.ts';
import {
  corrected,
  isMutating,
  webhookConfiguration,
  type WebhookConfiguration,
  type WebhookTarget,
  widened,
} from './webhook-configuration.ts';
import { WrittenObjects } from './written-objects.ts';

/** How an API server says that it understood a configuration, and will not have it. */
const REFUSALS: ReadonlySet<number> = new Set([400, 422]);

/** The API server will not ask as it was told to. */
export class WebhookRefusal extends Error {
  override readonly name = 'WebhookRefusal';
}

interface Configurations {
  readonly cache: ObjectCache<WebhookConfiguration>;
  readonly objects: WrittenObjects<WebhookConfiguration>;
  /** By name: those that differ from what was written, as the API server keeps them. */
  readonly taken: Map<string, Taken>;
}

export interface PolicyWebhooksOptions {
  readonly cluster: Cluster;
  readonly validating: ObjectCache<WebhookConfiguration>;
  readonly mutating: ObjectCache<WebhookConfiguration>;
  /** Where the API server reaches the replicas of a PolicyServer. */
  readonly target: (policyServer: string) => WebhookTarget;
  /** Of the product. */
  readonly namespace: string;
}

/** What the API server made of what it was told: it leaves out what is empty, and others may add to it. */
interface Taken {
  readonly wanted: WebhookConfiguration;
  readonly version: string | undefined;
}

export class PolicyWebhooks {
  readonly #cluster: Cluster;
  readonly #target: PolicyWebhooksOptions['target'];
  readonly #namespace: string;
  readonly #validating: Configurations;
  readonly #mutating: Configurations;

  constructor({ cluster, validating, mutating, target, namespace }: PolicyWebhooksOptions) {
    this.#cluster = cluster;
    this.#target = target;
    this.#namespace = namespace;
    this.#validating = { cache: validating, objects: new WrittenObjects(validating), taken: new Map() };
    this.#mutating = { cache: mutating, objects: new WrittenObjects(mutating), taken: new Map() };
  }

  /** Whether the API server asks about a policy, however it was declared then. */
  isAsked(id: string): boolean {
    return [this.#validating, this.#mutating].some(({ objects }) => objects.get({ name: id }) !== undefined);
  }

  /**
   * Has the API server ask about all requests that any of the specs is for. Whether anything had to be written.
   * @throws WebhookRefusal, ApiError
   */
  async widen(
    policy: AdmissionPolicyObject,
    specs: readonly AdmissionPolicySpec[],
    signal: AbortSignal,
  ): Promise<boolean> {
    let isWritten = false;
    for (const isForMutating of [false, true]) {
      const ofKind = specs.filter((spec) => isMutating({ spec }) === isForMutating);
      const last = ofKind.at(-1);
      if (last !== undefined) {
        const others = ofKind.slice(0, -1).map((spec) => this.#configurationOf(policy, spec));
        const exact = this.#configurationOf(policy, last);
        const own = isForMutating ? this.#mutating : this.#validating;
        isWritten = (await this.#write(own, widened(exact, others), signal, exact)) || isWritten;
      }
    }
    return isWritten;
  }

  /** Has the API server ask exactly as a spec says. Whether anything had to be written. @throws WebhookRefusal, ApiError */
  async enforce(policy: AdmissionPolicyObject, spec: AdmissionPolicySpec, signal: AbortSignal): Promise<boolean> {
    const [own, other] = isMutating({ spec }) ? [this.#mutating, this.#validating] : [this.#validating, this.#mutating];
    const isWritten = await this.#write(own, this.#configurationOf(policy, spec), signal);
    return (await this.#remove(other, policyId(policy), signal)) || isWritten;
  }

  /** The API server asks no more. */
  async dismiss(id: string, signal: AbortSignal): Promise<void> {
    await this.#remove(this.#validating, id, signal);
    await this.#remove(this.#mutating, id, signal);
  }

  #configurationOf(policy: AdmissionPolicyObject, spec: AdmissionPolicySpec): WebhookConfiguration {
    const object = { ...policy, spec } as AdmissionPolicyObject;
    return webhookConfiguration(object, this.#target(spec.policyServer ?? 'default'), this.#namespace);
  }

  async #write(
    own: Configurations,
    wanted: WebhookConfiguration,
    signal: AbortSignal,
    /** Tried before `wanted` is written: what it will have to be in the end. */
    next: WebhookConfiguration = wanted,
  ): Promise<boolean> {
    const { cache, objects, taken } = own;
    const options = { fieldManager: FIELD_MANAGER, signal };
    const key = keyOf(wanted);
    const actual = objects.get(key);
    try {
      if (actual === undefined) {
        // One that lost its label is not in the cache, and taken over.
        const body = wanted as unknown as JsonObject;
        const made = await this.#cluster.patch(cache.type, key, { type: 'apply', body, force: true }, options);
        objects.wrote(key, made);
        return true;
      }
      const change = corrected(actual, wanted);
      if (change === undefined || isTaken(taken.get(key.name), actual, wanted)) {
        return false;
      }
      if (!isDeepStrictEqual(next, wanted)) {
        // What is left out of a wider one may be what the API server refuses.
        await this.#cluster.update(cache.type, corrected(actual, next) ?? actual, { ...options, dryRun: true });
      }
      // Replaced, not applied: what others added is theirs, and applying leaves it.
      const made = await this.#cluster.update(cache.type, change, options);
      objects.wrote(key, made);
      if (corrected(made, wanted) === undefined) {
        taken.delete(key.name);
      } else {
        taken.set(key.name, { wanted, version: made.metadata.resourceVersion });
      }
      return true;
    } catch (error) {
      if (error instanceof ApiError && REFUSALS.has(error.code)) {
        throw new WebhookRefusal(error.message, { cause: error });
      }
      if (error instanceof ApiError && (error.code === 409 || error.code === 404)) {
        objects.forget(key);
      }
      throw error;
    }
  }

  async #remove({ cache, objects, taken }: Configurations, id: string, signal: AbortSignal): Promise<boolean> {
    const key = { name: id };
    taken.delete(id);
    if (objects.get(key) === undefined) {
      return false;
    }
    await unlessGone(this.#cluster.delete(cache.type, key, { signal }));
    objects.wrote(key, undefined);
    return true;
  }
}

/** Whether a configuration is what the API server made of what is wanted, and nobody has touched it since. */
function isTaken(taken: Taken | undefined, { metadata }: WebhookConfiguration, wanted: WebhookConfiguration): boolean {
  return (
    taken !== undefined &&
    taken.version === metadata.resourceVersion &&
    isDeepStrictEqual(taken.wanted.webhooks, wanted.webhooks)
  );
}
