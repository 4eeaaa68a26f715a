// Accepts PolicyExceptions, and says in their status whether they are in force, and used.
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { Gauge, type Registry } from 'prom-client';
import { type Cluster, unlessGone } from '../../cluster/index.ts';
import {
  type AdmissionPolicyObject,
  CONTROLLER_FIELD_MANAGER,
  exceptedPolicyId,
  findCondition,
  keyOf,
  type ObjectKey,
  type OwnKind,
  POLICY_EXCEPTIONS,
  POLICY_KINDS,
  type PolicyException,
  policyId,
  READY,
} from '../../resources/index.ts';
import {
  type CachedObjects,
  Controller,
  type EventSink,
  type ReconcileResult,
  type Runnable,
  type RuntimeMetrics,
  type SharedCaches,
  watch,
  WrittenObjects,
} from '../../runtime/index.ts';
import { asJson, inertTexts } from '../../values/index.ts';
import { readGuard } from './exception-guard.ts';
import { type ExceptionFacts, exceptionStatus, type GuardState, nextChange } from './exception-status.ts';
import { differOnlyInUses, settledUses, usesStatus } from './exception-uses.ts';
import type { ReplicaHub } from '../replicas/replica-hub.ts';
import type { ReplicaUse } from '../replicas/exception-reports.ts';
import type { SilentReplicas } from './use-condition.ts';
import { UsePace } from './use-pace.ts';

/** Delay before the guard is looked for again. Milliseconds. */
const GUARD_RETRY_MS = 10_000;
/** For how long one answer about the guard counts: a controller that starts reads all exceptions at once. Milliseconds. */
const GUARD_AGE_MS = 1_000;
/** Longest delay that a timer of Node takes is 24.8 days. Milliseconds. */
const MAX_DELAY_MS = 20 * 86_400_000;

export interface ExceptionControllerOptions {
  readonly cluster: Pick<Cluster, 'get' | 'patch'>;
  /** Of exceptions. Where the kind is not served, they are never synced. */
  readonly caches: SharedCaches;
  /** Of policies. */
  readonly policies: SharedCaches;
  /** Whether an auditor writes a part of statuses. Without one, that part is removed: nobody keeps it current. Default: yes. */
  readonly isAudited?: boolean;
  /** Those that count uses. Default: uses are not known. */
  readonly replicas?: Pick<ReplicaHub, 'exceptions' | 'mayReport' | 'replicas'>;
  /** Interval between two writes about uses of one exception. Default: that of {@link UsePace}. */
  readonly usesIntervalMs?: number;
  /** Whether API servers have to ask who may except. Default: yes. */
  readonly isGuarded?: boolean;
  readonly events: EventSink;
  readonly registry: Registry;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics;
  /** Milliseconds since 1970. Default: the system's clock. */
  readonly now?: () => number;
}

type Status = NonNullable<PolicyException['status']>;

interface CachedPolicies {
  readonly type: OwnKind;
  readonly cache: CachedObjects<AdmissionPolicyObject>;
}

/** Writes the status of exceptions when it changes. Only the leader runs it. */
export class ExceptionController implements Runnable {
  readonly name = 'policyexception';
  readonly #options: ExceptionControllerOptions;
  readonly #exceptions: WrittenObjects<PolicyException>;
  /** By kind. */
  readonly #policies: ReadonlyMap<string, CachedPolicies>;
  /** Keys of exceptions by the policies that they name. */
  readonly #byPolicy;
  readonly #byUid;
  readonly #pace: UsePace;
  readonly #controller: Controller;
  #guard: { readonly readAt: number; readonly state: Promise<GuardState> } | undefined;

  constructor(options: ExceptionControllerOptions) {
    const { caches, policies, log, metrics, registry } = options;
    this.#options = options;
    const exceptions = caches.cache(POLICY_EXCEPTIONS);
    this.#exceptions = new WrittenObjects(exceptions);
    this.#byPolicy = exceptions.index(policiesOf);
    this.#byUid = exceptions.index(({ metadata }) => [metadata.uid ?? '']);
    this.#pace = new UsePace(options.usesIntervalMs);
    exceptions.subscribe(({ before, after }) => {
      if (before !== undefined && before.metadata.uid !== after?.metadata.uid) {
        this.#forget(before.metadata.uid ?? '');
      }
    });
    const cached = POLICY_KINDS.map((type) => ({ type, cache: policies.cache(type) }));
    this.#policies = new Map(cached.map((one) => [one.type.kind, one]));
    this.#controller = new Controller({
      name: this.name,
      reconcile: (key, signal) => this.#reconcile(key, signal),
      watches: [
        watch(exceptions),
        ...cached.map(({ type: { kind }, cache }) =>
          watch(cache, {
            when: [({ before, after }) => before?.metadata.uid !== after?.metadata.uid],
            keys: ({ metadata }) => this.#byPolicy.get(policyId({ kind, metadata })).map(keyOf),
          }),
        ),
      ],
      log,
      ...(metrics === undefined ? {} : { metrics }),
    });
    countExceptions(registry, () => exceptions.list());
  }

  async start(signal: AbortSignal): Promise<void> {
    let unsubscribe: (() => void) | undefined;
    // What was reported before is read by the first reconciliation of each exception.
    void this.#controller.ready.then(() => {
      unsubscribe = signal.aborted
        ? undefined
        : this.#options.replicas?.exceptions.subscribe((uids) => this.#used(uids));
    });
    try {
      await this.#controller.start(signal);
    } finally {
      unsubscribe?.();
    }
  }

  #used(uids: ReadonlySet<string>): void {
    for (const uid of uids) {
      const [exception] = this.#byUid.get(uid);
      if (exception === undefined) {
        this.#forget(uid);
      } else {
        this.#controller.enqueue(keyOf(exception), { afterMs: this.#useDelayMs(uid) });
      }
    }
  }

  #forget(uid: string): void {
    const uses = this.#options.replicas?.exceptions;
    uses?.drop(uses.of(uid));
    this.#pace.forget(uid);
  }

  async #reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult> {
    const exception = this.#exceptions.get(key);
    if (exception === undefined || exception.metadata.deletionTimestamp !== undefined) {
      return {};
    }
    const { isGuarded = true, now: clock = Date.now } = this.#options;
    const guard = isGuarded ? await this.#readGuard(signal) : 'not-needed';
    const now = clock();
    const status = this.#statusOf(exception, guard, now);
    const waitMs = this.#waitMs(exception, status);
    if (waitMs === 0) {
      await this.#update(exception, status, signal);
    }
    const changeMs = (nextChange(exception, status, now) ?? Infinity) - now;
    const guardMs = guard === 'missing' ? GUARD_RETRY_MS : Infinity;
    return { requeueAfterMs: Math.min(changeMs, guardMs, waitMs || Infinity, MAX_DELAY_MS) };
  }

  #statusOf(exception: PolicyException, guard: GuardState, now: number): Status {
    const { replicas } = this.#options;
    const uses = usesStatus(exception.status, this.#reportsOf(exception), (name) => replicas?.mayReport(name) ?? true);
    const uidOf: ExceptionFacts['uidOf'] = (...policy) => this.#policyOf(...policy)?.metadata.uid;
    return inertTexts(exceptionStatus(exception, { uidOf, guard, uses, silent: this.#silent(exception), now }));
  }

  #silent({ metadata, spec }: PolicyException): SilentReplicas {
    const policies = spec.policies.flatMap((one) => this.#policyOf(one, metadata.namespace ?? '') ?? []);
    const servers = [...new Set(policies.map((policy) => policy.spec.policyServer ?? 'default'))];
    const replicas = servers.map((server) => this.#options.replicas?.replicas(server));
    return replicas.includes(undefined)
      ? undefined
      : replicas.flatMap((all) => (all ?? []).filter((one) => one.reportsUses !== true).map(({ name }) => name));
  }

  #reportsOf({ metadata }: PolicyException): readonly ReplicaUse[] {
    return this.#options.replicas?.exceptions.of(metadata.uid ?? '') ?? [];
  }

  /** The status without the part that the auditor writes. */
  #ownStatus({ status }: PolicyException): Status | undefined {
    if (status === undefined || this.#options.isAudited === false) {
      return status;
    }
    const { matched: _, ...own } = status;
    return own;
  }

  /** The delay of a status that differs in nothing but uses; 0: it may be written now. */
  #waitMs(exception: PolicyException, status: Status): number {
    const { metadata } = exception;
    const before = this.#ownStatus(exception);
    const isUseOnly = differOnlyInUses(before, status) && !isDeepStrictEqual(before, status);
    return isUseOnly ? this.#useDelayMs(metadata.uid ?? '') : 0;
  }

  /** What a replica that is gone has reported is lost with this process until it is written. */
  #useDelayMs(uid: string): number {
    const { replicas } = this.#options;
    const isUrgent = replicas?.exceptions.of(uid).some(({ replica }) => !replicas.mayReport(replica)) === true;
    return this.#pace.delayMs(uid, performance.now(), isUrgent);
  }

  async #update(exception: PolicyException, status: Status, signal: AbortSignal): Promise<void> {
    if (!isDeepStrictEqual(this.#ownStatus(exception), status)) {
      await this.#write(exception, status, signal);
    }
    if (status.used !== exception.status?.used) {
      this.#pace.written(exception.metadata.uid ?? '', performance.now());
    }
    this.#options.replicas?.exceptions.drop(settledUses(status, this.#reportsOf(exception)));
  }

  #readGuard(signal: AbortSignal): Promise<GuardState> {
    const now = performance.now();
    if (this.#guard === undefined || now - this.#guard.readAt > GUARD_AGE_MS) {
      this.#guard = { readAt: now, state: readGuard(this.#options.cluster, signal) };
    }
    return this.#guard.state;
  }

  async #write(exception: PolicyException, status: Status, signal: AbortSignal): Promise<void> {
    const key = keyOf(exception);
    const { accepted = null, ...rest } = status;
    const { resourceVersion = '' } = exception.metadata;
    // Of exactly this object: not of one that was changed or created again meanwhile.
    const { cluster, events, isAudited } = this.#options;
    const removed = isAudited === false ? { matched: null } : {};
    const body = asJson({ metadata: { resourceVersion }, status: { ...rest, accepted, ...removed } });
    const options = { subresource: 'status', fieldManager: CONTROLLER_FIELD_MANAGER, signal };
    const written = await unlessGone(cluster.patch(POLICY_EXCEPTIONS, key, { type: 'merge', body }, options));
    this.#exceptions.recordWrite(key, written);
    if (written !== undefined && status.state !== exception.status?.state) {
      const isGood = status.state === 'Active';
      const { reason = '', message = '' } = findCondition(status.conditions, READY) ?? {};
      events.event(written, isGood ? 'Normal' : 'Warning', reason, message);
    }
  }

  #policyOf(
    { kind, name }: Parameters<ExceptionFacts['uidOf']>[0],
    namespace: string,
  ): AdmissionPolicyObject | undefined {
    const { type, cache } = this.#policies.get(kind) ?? {};
    return cache?.get(type?.namespaced === true ? { namespace, name } : { name });
  }
}

function policiesOf({ metadata, spec }: PolicyException): readonly string[] {
  return spec.policies.map((one) => exceptedPolicyId(one, metadata.namespace ?? ''));
}

function countExceptions(registry: Registry, list: () => Iterable<PolicyException>): void {
  const gauge = new Gauge({
    name: 'portcullis_policy_exceptions',
    help: 'PolicyExceptions by state',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { status } of list()) {
        this.inc({ state: status?.state ?? 'Pending' });
      }
    },
  });
  gauge.reset();
}
