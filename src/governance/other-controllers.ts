// Controllers of Open Cluster Management in the same cluster. They reconcile the same kinds, so governance stops while one runs.
import type { Logger } from 'pino';
import { Gauge, type Registry } from 'prom-client';
import { knownKind, type KubernetesObject, valueAt } from '../resources/index.ts';
import { OTHER_CONTROLLERS } from './access-rules/governance-rules.ts';
import { aborted, type EventSink, type ObjectCache, type SharedCaches } from '../runtime/index.ts';

const DEPLOYMENTS = knownKind('apps/v1', 'Deployment');
const EVENT_REASON = 'GovernanceStopped';

export interface OtherControllersOptions {
  /** With the right to list and watch Deployments named {@link OTHER_CONTROLLERS}. They run in every replica. */
  readonly caches: Pick<SharedCaches, 'cache'>;
  readonly events: EventSink;
  readonly log: Logger;
  /** Gets the metric of how many run. */
  readonly registry: Registry;
}

/** Whether a Deployment has pods, or should have. */
export function isRunning({ spec, status }: KubernetesObject): boolean {
  const wanted = valueAt(spec, 'replicas');
  const actual = valueAt(status, 'replicas');
  return (wanted ?? 1) !== 0 || (actual ?? 0) !== 0;
}

/** Runs governance only while no controller of Open Cluster Management runs. Created before the caches start. */
export class OtherControllers {
  readonly #options: OtherControllersOptions;
  readonly #caches: readonly ObjectCache[];
  /** UIDs of reported Deployments. */
  #reported: ReadonlySet<string> = new Set();

  constructor(options: OtherControllersOptions) {
    this.#options = options;
    this.#caches = OTHER_CONTROLLERS.map((name) =>
      options.caches.cache(DEPLOYMENTS, { fieldSelector: `metadata.name=${name}` }),
    );
    const count = (): number => this.running().length;
    const running = new Gauge({
      name: 'portcullis_governance_other_controllers',
      help: 'Deployments of Open Cluster Management that run. While there is one, governance does nothing',
      registers: [],
      collect() {
        this.set(count());
      },
    });
    options.registry.registerMetric(running);
  }

  /** The Deployments that run; empty before they are known. */
  running(): readonly KubernetesObject[] {
    return this.#caches.flatMap((cache) => cache.list().filter(isRunning));
  }

  /**
   * Calls `run` while no other controller runs; its signal is aborted when one appears. Ends when `signal` is aborted.
   * @param blocked called when another controller runs
   * @throws the error of `run`
   */
  async whileNone(
    signal: AbortSignal,
    run: (alone: AbortSignal) => Promise<void>,
    blocked: () => void = () => undefined,
  ): Promise<void> {
    const synced = Promise.all(this.#caches.map((cache) => cache.synced));
    await Promise.race([synced, aborted(signal)]).catch((error: unknown) => {
      // A cache that stops before it is synced fails.
      if (!signal.aborted) {
        throw error;
      }
    });
    while (!signal.aborted) {
      await this.#runWhileNone(signal, run, blocked);
    }
  }

  async #runWhileNone(
    signal: AbortSignal,
    run: (alone: AbortSignal) => Promise<void>,
    blocked: () => void,
  ): Promise<void> {
    const changed = new AbortController();
    const isAlone = this.running().length === 0;
    const ends = this.#caches.map((cache) =>
      cache.subscribe(() => {
        this.#report();
        if ((this.running().length === 0) !== isAlone) {
          changed.abort();
        }
      }),
    );
    this.#report();
    const until = AbortSignal.any([signal, changed.signal]);
    try {
      if (isAlone) {
        await run(until);
      } else {
        blocked();
      }
      await aborted(until);
    } finally {
      for (const end of ends) {
        end();
      }
    }
  }

  /** Reports each running Deployment once, and again when it stopped in between. */
  #report(): void {
    const running = this.running();
    for (const deployment of running.filter(({ metadata }) => !this.#reported.has(metadata.uid ?? ''))) {
      const { namespace = '', name = '' } = deployment.metadata;
      this.#options.log.warn(
        { namespace, deployment: name },
        'a controller of Open Cluster Management runs: the governance of Portcullis stops until it is gone',
      );
      const message =
        'It reconciles the same kinds as the governance of Portcullis, which does nothing until this Deployment is gone or has no replicas. Without Portcullis for governance: --no-governance';
      this.#options.events.event(deployment, 'Warning', EVENT_REASON, message);
    }
    if (this.#reported.size > 0 && running.length === 0) {
      this.#options.log.info('no controller of Open Cluster Management runs any more: governance continues');
    }
    this.#reported = new Set(running.map(({ metadata }) => metadata.uid ?? ''));
  }
}
