// Says in statuses of policies that no auditor keeps them current.
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import type { Cluster } from '../../cluster/index.ts';
import {
  type AdmissionPolicyObject,
  CONTROLLER_FIELD_MANAGER,
  keyOf,
  type ObjectKey,
  type OwnKind,
  POLICY_KINDS,
  unknownAudit,
} from '../../resources/index.ts';
import {
  aborted,
  type Clock,
  Controller,
  generationChanged,
  LOW_PRIORITY,
  type ObjectCache,
  pause,
  type Runnable,
  type RuntimeMetrics,
  type SharedCaches,
  SYSTEM_CLOCK,
  TokenBucket,
  watch,
} from '../../runtime/index.ts';
import { applyAudit } from '../policy-status/apply-audit.ts';
import type { AuditorPresence } from './auditor-presence.ts';

/** When an auditor goes, the statuses of all policies are written: of ten thousand in some eight minutes. */
const WRITES = { perSecond: 20, burst: 20 } as const;

export interface UnauditedPoliciesOptions {
  readonly cluster: Pick<Cluster, 'patch'>;
  readonly caches: SharedCaches;
  readonly presence: Pick<AuditorPresence, 'absence' | 'onChange'>;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics;
  /** Default: that of the machine. */
  readonly clock?: Clock;
}

interface PoliciesOfKind {
  readonly policies: ObjectCache<AdmissionPolicyObject>;
  readonly controller: Controller;
}

/**
 * Writes the part of statuses that is the auditor's, while none works. An auditor that comes back overwrites it, and writes of
 * auditors cause nothing here, so that the two never take turns.
 */
export class UnauditedPolicies implements Runnable {
  readonly name = 'unaudited-policies';
  readonly #options: UnauditedPoliciesOptions;
  readonly #clock: Clock;
  readonly #pace = new TokenBucket(WRITES);
  readonly #kinds: readonly PoliciesOfKind[];

  constructor(options: UnauditedPoliciesOptions) {
    const { caches, clock = SYSTEM_CLOCK, log, metrics } = options;
    this.#options = options;
    this.#clock = clock;
    this.#kinds = POLICY_KINDS.map((kind) => {
      const policies = caches.cache(kind);
      const controller = new Controller({
        name: `unaudited-${kind.resource}`,
        reconcile: (key, signal) => this.#reconcile(kind, policies.get(key), key, signal),
        watches: [watch(policies, { when: [generationChanged] })],
        log,
        clock,
        ...(metrics === undefined ? {} : { metrics }),
      });
      return { policies, controller };
    });
  }

  /** Runs until `signal` is aborted; may then be started again. */
  async start(signal: AbortSignal): Promise<void> {
    const end = this.#options.presence.onChange(() => this.#enqueueAll());
    try {
      await Promise.all([aborted(signal), ...this.#kinds.map(({ controller }) => controller.start(signal))]);
    } finally {
      end();
    }
  }

  #enqueueAll(): void {
    for (const { policies, controller } of this.#kinds) {
      policies.list().forEach((policy) => controller.enqueue(keyOf(policy), { priority: LOW_PRIORITY }));
    }
  }

  /** @throws ApiError, ClusterError */
  async #reconcile(
    kind: OwnKind<AdmissionPolicyObject>,
    policy: AdmissionPolicyObject | undefined,
    key: ObjectKey,
    signal: AbortSignal,
  ): Promise<void> {
    const absence = this.#options.presence.absence(kind);
    if (policy === undefined || absence === undefined) {
      return;
    }
    const before = policy.status?.audit;
    const audit = unknownAudit(before, policy.metadata.generation ?? 0, absence);
    if (!isDeepStrictEqual({ ...before }, { ...audit })) {
      await pause(this.#clock, this.#pace.reserve(this.#clock.now()), signal);
      const { uid, resourceVersion } = policy.metadata;
      await applyAudit(this.#options.cluster, kind, { ...key, uid, resourceVersion }, audit, {
        fieldManager: CONTROLLER_FIELD_MANAGER,
        signal,
      });
    }
  }
}
