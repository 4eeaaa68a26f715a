import type { Logger } from 'pino';
import { type Cluster, unlessGone } from '../../cluster/index.ts';
import {
  aborted,
  Controller,
  type Runnable,
  type RuntimeMetrics,
  type SharedCaches,
  Waiting,
  watch,
} from '../../runtime/index.ts';
import type { AccessRule } from '../../resources/index.ts';
import { FIELD_MANAGER } from '../field-manager.ts';
import { VALIDATING_WEBHOOKS } from '../policy-kinds.ts';
import { MANAGED_BY_SELECTOR } from '../managed-by.ts';
import { corrected, type WebhookConfiguration } from '../webhooks/webhook-object.ts';
import { OWN_KINDS_CONFIGURATION } from './own-kinds-configuration.ts';

/** What the registration needs to be allowed (RBAC). */
export const OWN_KINDS_RULES: readonly AccessRule[] = [
  {
    apiGroups: [VALIDATING_WEBHOOKS.group],
    resources: [VALIDATING_WEBHOOKS.resource],
    verbs: ['get', 'list', 'watch', 'create', 'update'],
  },
];

/** How often it is looked whether the endpoint is reached, if nobody tells. Milliseconds. */
const UNREACHED_MS = 5_000;

const KEY = { name: OWN_KINDS_CONFIGURATION };

export interface OwnKindsRegistrationOptions {
  readonly cluster: Cluster;
  readonly caches: SharedCaches;
  /** What is to be there. Waited for: the port may not be known yet. Undefined: it cannot be told yet, `subscribe` will. */
  readonly configuration: () => Promise<WebhookConfiguration | undefined>;
  /**
   * Whether API servers would reach the endpoint. Until they do, no configuration is made, as it would refuse every write of our
   * kinds; one that is there is kept right. When it says something else, `subscribe` tells.
   */
  readonly isReached: () => boolean;
  /** Tells that the configuration is to be another one, or that it can be made now. Returns what ends it. */
  readonly subscribe: (listener: () => void) => () => void;
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
    const labelSelector = MANAGED_BY_SELECTOR;
    this.#controller = new Controller({
      name: this.name,
      reconcile: (_key, signal) => this.#reconcile(signal),
      watches: [
        watch(caches.cache(VALIDATING_WEBHOOKS, { labelSelector }), {
          keys: ({ metadata }) => (metadata.name === OWN_KINDS_CONFIGURATION ? [KEY] : []),
        }),
      ],
      log,
      ...(metrics === undefined ? {} : { metrics }),
    });
  }

  async start(signal: AbortSignal): Promise<void> {
    const unsubscribe = this.#options.subscribe(() => this.#controller.enqueue(KEY));
    try {
      const running = this.#controller.start(signal);
      await Promise.race([this.#controller.ready, aborted(signal), running]);
      // Nothing tells of what is not there.
      this.#controller.enqueue(KEY);
      await running;
    } finally {
      unsubscribe();
    }
  }

  /** Looks at the cluster, not at the cache: it is asked seldom, and then it matters. */
  async #reconcile(signal: AbortSignal): Promise<void> {
    const { cluster, configuration, isReached } = this.#options;
    const wanted = await configuration();
    if (wanted === undefined) {
      return;
    }
    const options = { fieldManager: FIELD_MANAGER, signal };
    const actual = await unlessGone(cluster.get(VALIDATING_WEBHOOKS, KEY, { signal }));
    if (actual === undefined) {
      if (!isReached()) {
        throw new Waiting(
          'EndpointNotReached',
          UNREACHED_MS,
          'no API server would reach the webhook for our own kinds yet',
        );
      }
      await cluster.create(VALIDATING_WEBHOOKS, wanted, options);
    } else {
      const change = corrected(actual, wanted);
      if (change !== undefined) {
        await cluster.update(VALIDATING_WEBHOOKS, change, options);
      }
    }
    this.#registered.resolve();
  }
}
