import type { Logger } from 'pino';
import type { Cluster } from '../cluster/index.ts';
import {
  ADMISSION_POLICIES,
  ADMISSION_POLICY_GROUPS,
  CLUSTER_ADMISSION_POLICIES,
  CLUSTER_ADMISSION_POLICY_GROUPS,
  type ResourceDefinition,
  type ResourceType,
} from '../resources/index.ts';
import {
  aborted,
  Controller,
  type EventSink,
  type ObjectCache,
  type Runnable,
  type RuntimeMetrics,
  type SharedCaches,
} from '../runtime/index.ts';
import type { AdmissionPolicyObject } from '../resources/index.ts';
import type { PolicyEntryOptions } from '../server/index.ts';
import { PolicyReconciler } from './old-policy-reconciler.ts';
import type { PolicySet } from './policy-set.ts';
import { MANAGED_BY, type WebhookTarget } from './webhook-configuration.ts';

/** The kinds of admission policies. */
export const POLICY_KINDS: readonly ResourceDefinition<AdmissionPolicyObject>[] = [
  CLUSTER_ADMISSION_POLICIES,
  ADMISSION_POLICIES,
  CLUSTER_ADMISSION_POLICY_GROUPS,
  ADMISSION_POLICY_GROUPS,
];

const ADMISSION = { group: 'admissionregistration.k8s.io', version: 'v1', namespaced: false } as const;
const VALIDATING: ResourceType = {
  ...ADMISSION,
  resource: 'validatingwebhookconfigurations',
  kind: 'ValidatingWebhookConfiguration',
};
const MUTATING: ResourceType = {
  ...ADMISSION,
  resource: 'mutatingwebhookconfigurations',
  kind: 'MutatingWebhookConfiguration',
};

export interface PolicyControllersOptions extends PolicyEntryOptions {
  readonly cluster: Cluster;
  readonly caches: SharedCaches;
  readonly set: PolicySet;
  /** Where the API server reaches the policy server. */
  readonly target: WebhookTarget;
  readonly events: EventSink;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics;
}

/** Has the policies of a cluster, of all kinds, served by one policy server. */
export class PolicyControllers implements Runnable {
  readonly name = 'policies';
  readonly ready: Promise<void>;
  readonly #set: PolicySet;
  readonly #caches: readonly Pick<ObjectCache, 'synced'>[];
  readonly #kinds: readonly { readonly reconciler: PolicyReconciler; readonly controller: Controller }[];
  readonly #isReady = Promise.withResolvers<void>();

  constructor({ caches, log, metrics, ...options }: PolicyControllersOptions) {
    this.ready = this.#isReady.promise;
    this.#set = options.set;
    const labelSelector = Object.entries(MANAGED_BY)
      .map(([key, value]) => `${key}=${value}`)
      .join();
    const validating = caches.cache(VALIDATING, { labelSelector });
    const mutating = caches.cache(MUTATING, { labelSelector });
    const kinds = POLICY_KINDS.map((kind) => {
      const policies = caches.cache(kind);
      const reconciler = new PolicyReconciler(kind, { ...options, policies, validating, mutating });
      const controller = new Controller({
        name: kind.resource,
        reconcile: (key, signal) => reconciler.reconcile(key, signal),
        watches: reconciler.watches(),
        events: { sink: options.events, of: (key) => policies.get(key) },
        log,
        ...(metrics === undefined ? {} : { metrics }),
      });
      return { policies, reconciler, controller };
    });
    this.#caches = [validating, mutating, ...kinds.map(({ policies }) => policies)];
    this.#kinds = kinds;
  }

  /** The policy server has news of the policy of this id. */
  statusChanged(id: string): void {
    for (const { reconciler, controller } of this.#kinds) {
      const key = reconciler.keyOf(id);
      if (key !== undefined) {
        controller.enqueue(key);
      }
    }
  }

  async start(signal: AbortSignal): Promise<void> {
    await Promise.race([aborted(signal), Promise.all(this.#caches.map(({ synced }) => synced))]);
    if (signal.aborted) {
      return;
    }
    await this.#set.replace(this.#kinds.flatMap(({ reconciler }) => reconciler.wanted()));
    const running = this.#kinds.map(({ controller }) => controller.start(signal));
    await Promise.race([Promise.all(this.#kinds.map(({ controller }) => controller.ready)), ...running]);
    this.#isReady.resolve();
    await Promise.all(running);
  }
}
