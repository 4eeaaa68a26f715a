// Assembles the controllers of governance policies for a cluster that is its own hub.
import { POLICIES } from '../resources/index.ts';
import { aborted, type Runnable } from '../runtime/index.ts';
import type { GovernanceReviews } from './hub/admission/governance-reviews.ts';
import { GovernanceParts, type GovernancePartsOptions } from './parts/governance-parts.ts';
import type { GovernanceSettings } from './settings/governance-settings.ts';
import { HubControllers, type KeptRevisions } from './hub/hub-controllers.ts';
import { MemberControllers } from './member/member-controllers.ts';
import type { OtherControllers } from './other-controllers.ts';
import { OwnCluster } from './targets/own-cluster.ts';

export interface GovernanceOptions extends GovernancePartsOptions {
  readonly settings: GovernanceSettings;
  /** Default: no revisions are kept, and what is declared is applied. */
  readonly kept?: KeptRevisions;
  /** Controllers that must not run at the same time: while one runs, these do nothing. Default: none. */
  readonly others?: Pick<OtherControllers, 'running' | 'whileNone'>;
  /** Whether differences in statuses are complete, for dry runs. Default: their first lines. */
  readonly fullDiffs?: boolean;
}

/** The controllers of Policies, PolicySets and the kinds of their templates: of the hub, and of its only member, itself. */
export class GovernanceControllers implements Runnable {
  readonly name = 'governance';
  /** Resolves when they run, or when another controller prevents that. */
  readonly ready: Promise<void>;
  /** The rules for writes of governance kinds; they use caches only. */
  readonly reviews: GovernanceReviews;
  readonly #others: GovernanceOptions['others'];
  readonly #parts: GovernanceParts;
  readonly #hub: HubControllers;
  readonly #member: MemberControllers;
  readonly #isReady = Promise.withResolvers<void>();

  constructor({ settings, kept, others, fullDiffs = false, ...options }: GovernanceOptions) {
    const { clusterName: namespace, mode } = settings;
    this.ready = this.#isReady.promise;
    this.#others = others;
    const parts = new GovernanceParts(options);
    this.#parts = parts;
    this.#hub = new HubControllers({
      parts,
      targets: new OwnCluster(namespace, mode === 'hub'),
      governed: settings,
      clusterNamespace: namespace,
      revisions: kept,
      isSilent: () => (others?.running() ?? []).length > 0,
    });
    const policies = options.caches.cache(POLICIES);
    this.#member = new MemberControllers({ parts, namespace, hub: { policies, graphs: this.#hub.graphs }, fullDiffs });
    this.reviews = this.#hub.reviews;
  }

  /** Runs until `signal` is aborted; may then be started again. */
  async start(signal: AbortSignal): Promise<void> {
    await (this.#others === undefined
      ? this.#run(signal)
      : this.#others.whileNone(
          signal,
          (alone) => this.#run(alone),
          () => this.#isReady.resolve(),
        ));
  }

  /** Whether all queues are empty. Changes that the caches do not show yet may add work. */
  get isIdle(): boolean {
    return this.#parts.evaluations.isIdle && this.#hub.isIdle && this.#member.isIdle;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const running = [this.#parts, this.#hub, this.#member].map((one) => one.start(signal));
    await Promise.race([aborted(signal), Promise.all([this.#hub.ready, this.#member.ready]), ...running]);
    this.#isReady.resolve();
    await Promise.all(running);
  }
}
