// Writes what policies say about existing objects into their statuses.
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import type { Cluster } from '../../cluster/index.ts';
import {
  type AdmissionPolicyObject,
  AUDITOR_FIELD_MANAGER,
  type AuditStatus,
  keyOf,
  type ObjectKey,
  POLICY_KINDS,
  policyId,
  type ResourceType,
} from '../../resources/index.ts';
import {
  aborted,
  type Clock,
  Controller,
  type ObjectCache,
  type ObjectIndex,
  type Predicate,
  type ReconcileResult,
  type Runnable,
  type RuntimeMetrics,
  type SharedCaches,
  SYSTEM_CLOCK,
  watch,
  WrittenObjects,
} from '../../runtime/index.ts';
import { inertTexts } from '../../values/index.ts';
import type { Coverage } from '../coverage.ts';
import { applyAudit } from './apply-audit.ts';
import { auditStatus, type StatusFinding } from './audit-status.ts';

/** Delay that collects changes of what is known by a policy into one write. Milliseconds. */
const GATHER_MS = 1_000;
/** Minimum interval between two writes about a policy whose state stays the same. Milliseconds. */
const CHANGE_INTERVAL_MS = 10_000;
/** The same where only the times of scans differ, which metrics have to the second. Milliseconds. */
const TIME_INTERVAL_MS = 3_600_000;

/** What an auditor knows by its policies. */
export interface AuditedPolicies {
  /** Undefined: the policy is not known yet, or another auditor writes its status, which stays as it is. */
  coverage(policyId: string): readonly Coverage[] | undefined;
  /** The `metadata.generation` of the policy object that judged. */
  generationOf(policyId: string): number | undefined;
  ofPolicy(policyId: string): Iterable<StatusFinding>;
  /** Called when any of that has changed. Returns how to end it. */
  onCoverage(listener: (policyId: string) => void): () => void;
}

export interface AuditStatusOptions {
  readonly cluster: Pick<Cluster, 'patch'>;
  readonly caches: SharedCaches;
  readonly audited: AuditedPolicies;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics;
  /** Default: that of the machine. */
  readonly clock?: Clock;
}

interface AuditedKind {
  readonly byId: ObjectIndex<AdmissionPolicyObject>;
  readonly controller: Controller;
}

/** The part of policy statuses that an auditor writes. The controller of policies leaves it as it is. */
export class AuditStatusController implements Runnable {
  readonly name = 'audit-status';
  readonly ready: Promise<void>;
  readonly #audited: AuditedPolicies;
  readonly #kinds: readonly AuditedKind[];

  constructor(options: AuditStatusOptions) {
    const { caches, clock, log, metrics } = options;
    this.#audited = options.audited;
    this.#kinds = POLICY_KINDS.map((kind) => {
      const policies = caches.cache(kind);
      const writer = new AuditStatusWriter(kind, policies, options);
      const controller = new Controller({
        name: `audit-status-${kind.resource}`,
        reconcile: (key, signal) => writer.reconcile(key, signal),
        // Also where somebody else has changed it.
        watches: [watch(policies, { when: [auditChanged] })],
        log,
        ...(clock === undefined ? {} : { clock }),
        ...(metrics === undefined ? {} : { metrics }),
      });
      return { byId: policies.index((policy) => [policyId(policy)]), controller };
    });
    this.ready = Promise.all(this.#kinds.map(({ controller }) => controller.ready)).then(() => undefined);
  }

  async start(signal: AbortSignal): Promise<void> {
    const end = this.#audited.onCoverage((id) => this.#changed(id));
    try {
      await Promise.all([aborted(signal), ...this.#kinds.map(({ controller }) => controller.start(signal))]);
    } finally {
      end();
    }
  }

  #changed(id: string): void {
    for (const { byId, controller } of this.#kinds) {
      for (const policy of byId.get(id)) {
        controller.enqueue(keyOf(policy), { afterMs: GATHER_MS });
      }
    }
  }
}

/** Writes the statuses of the policies of one kind. */
class AuditStatusWriter {
  readonly #kind: ResourceType<AdmissionPolicyObject>;
  readonly #options: AuditStatusOptions;
  readonly #policies: WrittenObjects<AdmissionPolicyObject>;
  /** When policies were last written, by uid. Losing it costs a write too early. */
  readonly #writtenAt = new Map<string, number>();

  constructor(
    kind: ResourceType<AdmissionPolicyObject>,
    policies: ObjectCache<AdmissionPolicyObject>,
    options: AuditStatusOptions,
  ) {
    this.#kind = kind;
    this.#options = options;
    this.#policies = new WrittenObjects(policies);
    policies.subscribe(({ before, after }) => {
      if (after === undefined) {
        this.#writtenAt.delete(before?.metadata.uid ?? '');
      }
    });
  }

  /** @throws ApiError, ClusterError */
  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult> {
    const policy = this.#policies.get(key);
    const wanted = policy && this.#wanted(policy);
    if (policy === undefined || wanted === undefined) {
      return {};
    }
    const { clock = SYSTEM_CLOCK } = this.#options;
    const waitMs = this.#waitMs(policy, wanted, clock.date());
    if (waitMs > 0) {
      return Number.isFinite(waitMs) ? { requeueAfterMs: waitMs } : {};
    }
    await this.#write(key, policy, wanted, signal);
    this.#writtenAt.set(policy.metadata.uid ?? '', clock.date());
    return {};
  }

  #wanted(policy: AdmissionPolicyObject): AuditStatus | undefined {
    const { audited } = this.#options;
    const id = policyId(policy);
    const [coverage, generation] = [audited.coverage(id), audited.generationOf(id)];
    return coverage === undefined || generation === undefined
      ? undefined
      : inertTexts(auditStatus({ generation, coverage, findings: audited.ofPolicy(id) }, policy.status?.audit));
  }

  /** How long the status has to stay as it is. Infinity: until something changes. */
  #waitMs(policy: AdmissionPolicyObject, wanted: AuditStatus, now: number): number {
    const before = policy.status?.audit;
    if (before === undefined) {
      return 0;
    }
    const isOfSameSpec = before.observedGeneration === wanted.observedGeneration;
    // An auditor that has just started knows less than the status of the one before.
    const isKept = isOfSameSpec && wanted.state === 'Pending' && before.state !== 'Unknown';
    if (isDeepStrictEqual(before, wanted) || isKept) {
      return Infinity;
    }
    if (!isOfSameSpec || before.state !== wanted.state) {
      return 0;
    }
    if (isDeepStrictEqual(withoutTimes(before), withoutTimes(wanted))) {
      const [last, next] = [scanTime(before), scanTime(wanted)];
      return next > last ? last + TIME_INTERVAL_MS - now : Infinity;
    }
    return (this.#writtenAt.get(policy.metadata.uid ?? '') ?? -Infinity) + CHANGE_INTERVAL_MS - now;
  }

  async #write(
    key: ObjectKey,
    { metadata }: AdmissionPolicyObject,
    audit: AuditStatus,
    signal: AbortSignal,
  ): Promise<void> {
    // With the uid, a policy that was deleted and created anew does not get the status of the former one.
    const policy = { ...key, uid: metadata.uid };
    const options = { fieldManager: AUDITOR_FIELD_MANAGER, signal };
    const written = await applyAudit(this.#options.cluster, this.#kind, policy, audit, options);
    this.#policies.recordWrite(key, written);
  }
}

function scanTime({ lastCompleteScan }: AuditStatus): number {
  return lastCompleteScan === undefined ? 0 : Date.parse(lastCompleteScan);
}

const auditChanged: Predicate<AdmissionPolicyObject> = ({ before, after }) =>
  !isDeepStrictEqual(before?.status?.audit, after?.status?.audit);

function withoutTimes({ lastCompleteScan: _time, kinds, ...rest }: AuditStatus): object {
  return { ...rest, kinds: kinds?.map(({ scannedAt: _at, ...kind }) => kind) };
}
