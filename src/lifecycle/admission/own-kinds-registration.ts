import type { Logger } from 'pino';
import { type Cluster, isNotFound } from '../../cluster/index.ts';
import type { ResourceType } from '../../resources/index.ts';
import {
  aborted,
  Controller,
  type Runnable,
  type RuntimeMetrics,
  type SharedCaches,
  watch,
} from '../../runtime/index.ts';
import type { AccessRule } from '../../server/index.ts';
import { corrected, MANAGED_BY, type WebhookConfiguration } from '../webhook-configuration.ts';
import { OWN_KINDS_CONFIGURATION } from './own-kinds-configuration.ts';

const CONFIGURATIONS: ResourceType<WebhookConfiguration> = {
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  resource: 'validatingwebhookconfigurations',
  kind: 'ValidatingWebhookConfiguration',
  namespaced: false,
};

/** What the registration needs to be allowed (RBAC). */
export const OWN_KINDS_RULES: readonly AccessRule[] = [
  {
    apiGroups: [CONFIGURATIONS.group],
    resources: [CONFIGURATIONS.resource],
    verbs: ['get', 'list', 'watch', 'create', 'update'],
  },
];

const KEY = { name: OWN_KINDS_CONFIGURATION };

export interface OwnKindsRegistrationOptions {
  readonly cluster: Cluster;
  readonly caches: SharedCaches;
  /** What is to be there. Waited for: the port may not be known yet. */
  readonly configuration: () => Promise<WebhookConfiguration>;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics | undefined;
}

/**
 * Keeps the configuration of the webhook for our own kinds as it is to be: made when it is missing, put right when it
 * differs, and not touched otherwise. It stays when the process ends, and is removed with the product only.
 */
export class OwnKindsRegistration implements Runnable {
  readonly name = 'own-kinds-registration';
  /** Resolves when the configuration was right for the first time. */
  readonly ready: Promise<void>;
  readonly #options: OwnKindsRegistrationOptions;
  readonly #controller: Controller;
  readonly #registered = Promise.withResolvers<void>();

  constructor(options: OwnKindsRegistrationOptions) {
    this.#options = options;
    this.ready = this.#registered.promise;
    const { caches, log, metrics } = options;
    const labelSelector = Object.entries(MANAGED_BY)
      .map(([key, value]) => `${key}=${value}`)
      .join();
    this.#controller = new Controller({
      name: this.name,
      reconcile: (_key, signal) => this.#reconcile(signal),
      watches: [
        watch(caches.cache(CONFIGURATIONS, { labelSelector }), {
          keys: ({ metadata }) => (metadata.name === OWN_KINDS_CONFIGURATION ? [KEY] : []),
        }),
      ],
      log,
      ...(metrics === undefined ? {} : { metrics }),
    });
  }

  async start(signal: AbortSignal): Promise<void> {
    const running = this.#controller.start(signal);
    await Promise.race([this.#controller.ready, aborted(signal), running]);
    // Nothing tells of what is not there.
    this.#controller.enqueue(KEY);
    await running;
  }

  /** Looks at the cluster, not at the cache: it is asked seldom, and then it matters. */
  async #reconcile(signal: AbortSignal): Promise<void> {
    const { cluster, configuration } = this.#options;
    const wanted = await configuration();
    const options = { fieldManager: 'portcullis-controller', signal };
    let actual: WebhookConfiguration | undefined;
    try {
      actual = await cluster.get(CONFIGURATIONS, KEY, { signal });
    } catch (error) {
      if (!isNotFound(error)) {
        throw error;
      }
    }
    if (actual === undefined) {
      await cluster.create(CONFIGURATIONS, wanted, options);
    } else {
      const change = corrected(actual, wanted);
      if (change !== undefined) {
        await cluster.update(CONFIGURATIONS, change, options);
      }
    }
    this.#registered.resolve();
  }
}
