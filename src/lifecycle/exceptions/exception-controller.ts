// Accepts PolicyExceptions, and says in their status whether they are in force.
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
import { exceptionStatus, type GuardState, nextChange } from './exception-status.ts';

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
  /** Whether API servers have to ask who may except. Default: yes. */
  readonly isGuarded?: boolean;
  readonly events: EventSink;
  readonly registry: Registry;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics;
  /** Milliseconds since 1970. Default: the system's clock. */
  readonly now?: () => number;
}

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
  readonly #controller: Controller;
  #guard: { readonly readAt: number; readonly state: Promise<GuardState> } | undefined;

  constructor(options: ExceptionControllerOptions) {
    const { caches, policies, log, metrics, registry } = options;
    this.#options = options;
    const exceptions = caches.cache(POLICY_EXCEPTIONS);
    this.#exceptions = new WrittenObjects(exceptions);
    this.#byPolicy = exceptions.index(policiesOf);
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

  start(signal: AbortSignal): Promise<void> {
    return this.#controller.start(signal);
  }

  async #reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult> {
    const exception = this.#exceptions.get(key);
    if (exception === undefined || exception.metadata.deletionTimestamp !== undefined) {
      return {};
    }
    const { isGuarded = true, now: clock = Date.now } = this.#options;
    const guard = isGuarded ? await this.#readGuard(signal) : 'not-needed';
    const now = clock();
    const status = inertTexts(exceptionStatus(exception, { uidOf: (...one) => this.#uidOf(...one), guard, now }));
    if (!isDeepStrictEqual(exception.status, status)) {
      await this.#write(exception, status, signal);
    }
    const next = nextChange(exception, now);
    const requeued = next === undefined ? {} : { requeueAfterMs: Math.min(next - now, MAX_DELAY_MS) };
    return guard === 'missing' ? { requeueAfterMs: GUARD_RETRY_MS } : requeued;
  }

  #readGuard(signal: AbortSignal): Promise<GuardState> {
    const now = performance.now();
    if (this.#guard === undefined || now - this.#guard.readAt > GUARD_AGE_MS) {
      this.#guard = { readAt: now, state: readGuard(this.#options.cluster, signal) };
    }
    return this.#guard.state;
  }

  async #write(
    exception: PolicyException,
    status: NonNullable<PolicyException['status']>,
    signal: AbortSignal,
  ): Promise<void> {
    const key = keyOf(exception);
    const { accepted = null, ...rest } = status;
    const { resourceVersion = '' } = exception.metadata;
    // Of exactly this object: not of one that was changed or created again meanwhile.
    const body = asJson({ metadata: { resourceVersion }, status: { ...rest, accepted } });
    const options = { subresource: 'status', fieldManager: CONTROLLER_FIELD_MANAGER, signal };
    const { cluster, events } = this.#options;
    const written = await unlessGone(cluster.patch(POLICY_EXCEPTIONS, key, { type: 'merge', body }, options));
    this.#exceptions.recordWrite(key, written);
    if (written !== undefined && status.state !== exception.status?.state) {
      const isGood = status.state === 'Active';
      const { reason = '', message = '' } = findCondition(status.conditions, READY) ?? {};
      events.event(written, isGood ? 'Normal' : 'Warning', reason, message);
    }
  }

  #uidOf({ kind, name }: { readonly kind: string; readonly name: string }, namespace: string): string | undefined {
    const { type, cache } = this.#policies.get(kind) ?? {};
    return cache?.get(type?.namespaced === true ? { namespace, name } : { name })?.metadata.uid;
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
