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
import { CONTROLLER_FIELD_MANAGER, MANAGED_BY_SELECTOR } from '../../resources/index.ts';
import { VALIDATING_WEBHOOKS } from '../webhooks/webhook-kinds.ts';
import { corrected, type WebhookConfiguration } from '../webhooks/webhook-object.ts';
import { OWN_KINDS_CONFIGURATION } from './own-kinds-configuration.ts';

/** Delay before checking again whether API servers reach the endpoint. Milliseconds. */
const NOT_REACHED_RETRY_MS = 5_000;

const KEY = { name: OWN_KINDS_CONFIGURATION };

export interface OwnKindsRegistrationOptions {
  readonly cluster: Cluster;
  readonly caches: SharedCaches;
  /** The wanted configuration; resolves when the port is known. Undefined while the CA is unknown. */
  readonly configuration: () => Promise<WebhookConfiguration | undefined>;
  /**
   * Whether API servers reach the endpoint. Until they do, no configuration is created, since it would refuse all writes of
   * our kinds; an existing one is kept up to date.
   */
  readonly isReachable: () => boolean;
  /** Calls the listener when `configuration` or `isReachable` may return something else. @returns a function that unsubscribes */
  readonly subscribe: (listener: () => void) => () => void;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics | undefined;
}

/**
 * Creates and corrects the webhook configuration for our own kinds. The configuration stays when the process ends; only
 * `uninstall` removes it.
 */
export class OwnKindsRegistration implements Runnable {
  readonly name = 'own-kinds-registration';
  /** Resolves when the configuration is up to date for the first time. */
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
      // No watch event reports a missing configuration.
      this.#controller.enqueue(KEY);
      await running;
    } finally {
      unsubscribe();
    }
  }

  /** Reads the cluster, not the cache: a pass is rare, and must not act on a stale object. */
  async #reconcile(signal: AbortSignal): Promise<void> {
    const { cluster, configuration, isReachable } = this.#options;
    const wanted = await configuration();
    if (wanted === undefined) {
      return;
    }
    const options = { fieldManager: CONTROLLER_FIELD_MANAGER, signal };
    const actual = await unlessGone(cluster.get(VALIDATING_WEBHOOKS, KEY, { signal }));
    if (actual === undefined) {
      if (!isReachable()) {
        throw new Waiting(
          'EndpointNotReached',
          NOT_REACHED_RETRY_MS,
          'API servers do not reach the webhook for our own kinds yet',
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
