// Applies the objects of PolicyServers.
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { Gauge, type Registry } from 'prom-client';
import { type Cluster, unlessGone } from '../../cluster/index.ts';
import {
  ANNOTATIONS,
  type JsonObject,
  KUBEWARDEN_FINALIZERS,
  MANAGED_BY_SELECTOR,
  type ObjectKey,
  POLICY_REVISIONS,
  POLICY_SERVER_LABEL,
  POLICY_SERVERS,
  type PolicyServerObject,
  type Readiness,
} from '../../resources/index.ts';
import {
  annotationsChanged,
  anyOf,
  Controller,
  type EventSink,
  generationChanged,
  LOW_PRIORITY,
  type ObjectCache,
  type LastStep,
  type Predicate,
  type ReconcileAttempt,
  type ReconcileResult,
  type ReconcileStep,
  type Runnable,
  type RuntimeMetrics,
  runSteps,
  type SharedCaches,
  type Watch,
  watch,
  withStatus,
  worstFailure,
} from '../../runtime/index.ts';
import { MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS } from '../webhooks/webhook-kinds.ts';
import { errorText } from '../../values/index.ts';
import { AppliedObjects, NameTaken } from './applied-objects.ts';
import { type ContextAwareGrant, grantCondition } from './context-aware-grant.ts';
import { certificateConditions, type CertificateState } from './certificate-conditions.ts';
import { ContextAwareGrants } from './context-aware-grants.ts';
import { ContextAwareKinds } from './context-aware-kinds.ts';
import { deploymentFailure, readyPods, rolloutProgress } from './deployment-failure.ts';
import { moduleCacheOf } from './module-cache-volume.ts';
import { type Deployment, PolicyServerOwnership } from './ownership.ts';
import {
  OBJECT_CONDITIONS,
  OBJECT_REASONS,
  type PolicyServerReport,
  type PolicyServerReports,
  type ReportedCondition,
  SPEC_SUPPORTED_CONDITION,
} from './policy-server-conditions.ts';
import { policyServerObjectName } from '../certificates/policy-server-names.ts';
import { OBJECT_KINDS, type ObjectKind } from './object-kinds.ts';
import { policyServerObjects } from './policy-server-objects.ts';
import type { PolicyServerSettings } from './policy-server-settings.ts';
import { removeLeafSecrets } from './leaf-secrets.ts';
import { ReportStore } from './report-store.ts';
import { runningImage } from './running-image.ts';
import { unusedFields } from './spec-support.ts';
import { VerificationConfigs, type VerificationTexts } from './verification-files.ts';

/** PolicyServers that are reconciled in parallel, so that a slow one does not block others. */
const CONCURRENCY = 4;
/**
 * Delay before a new attempt at what no watch reports: missing rights and kinds that are not served, which hold policies back, and
 * taken names. Milliseconds.
 */
const RETRY_MS = 60_000;
/** Failures before any object is applied. */
const VERIFICATION_REASONS: ReadonlySet<string> = new Set([
  OBJECT_REASONS.verificationNotFound,
  OBJECT_REASONS.verificationInvalid,
]);

export interface PolicyServerObjectsControllerOptions {
  /**
   * Has the rights of `POLICY_SERVER_RULES`, `POLICY_SERVER_NAMESPACE_RULES`, and those for certificates of its mode.
   */
  readonly cluster: Cluster;
  readonly caches: SharedCaches;
  readonly settings: PolicyServerSettings;
  /** State of certificates. Default: none. */
  readonly certificates?: CertificateState;
  /**
   * Who manages the Secrets: `own` ones are removed with the PolicyServer; `external` ones are kept. Default: `own`.
   */
  readonly certificateMode?: 'own' | 'external';
  readonly events: EventSink;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics;
  /** Registry for gauges of foreign and orphaned PolicyServers. Default: none. */
  readonly registry?: Registry;
}

/** The shared state of the steps of a reconciliation. */
interface Subject {
  readonly name: string;
  /** The PolicyServer at the start; undefined if it was deleted. */
  readonly server: PolicyServerObject | undefined;
  /** Failed writes by kind. */
  readonly failures: Map<ObjectKind, unknown>;
  grant: ContextAwareGrant | undefined;
  verification: VerificationTexts;
}

/**
 * Applies the Deployment and the other objects of our PolicyServers, restores changed ones, and removes them when the
 * PolicyServer and its policies are gone. Only the leader runs it.
 */
export class PolicyServerObjectsController implements Runnable, PolicyServerReports {
  readonly name = 'policyserver-objects';
  readonly ready: Promise<void>;
  readonly #options: PolicyServerObjectsControllerOptions;
  readonly #servers: ObjectCache<PolicyServerObject>;
  readonly #ownership: PolicyServerOwnership;
  readonly #objects: AppliedObjects;
  readonly #kinds: ContextAwareKinds;
  readonly #configurations: readonly ObjectCache[];
  readonly #controller: Controller;
  readonly #grants: ContextAwareGrants;
  readonly #verification: VerificationConfigs;
  readonly #reports: ReportStore;
  readonly #steps: readonly ReconcileStep<Subject>[] = [
    (subject, signal) => this.#remove(subject, signal),
    (subject) => this.#release(subject),
    (subject) => this.#readVerification(subject),
    (subject, signal) => this.#grantAccess(subject, signal),
    (subject, signal) => this.#applyObjects(subject, signal),
    (subject) => this.#throwFailures(subject),
  ];
  /** Reasons why PolicyServers are foreign, by name: each is logged once. */
  readonly #foreign = new Map<string, string>();
  /** Deleted PolicyServers that policies still need. */
  readonly #orphaned = new Set<string>();

  constructor(options: PolicyServerObjectsControllerOptions) {
    const { cluster, caches, settings, log, metrics, registry } = options;
    const { namespace } = settings;
    this.#options = options;
    this.#servers = caches.cache(POLICY_SERVERS);
    this.#ownership = new PolicyServerOwnership({ caches, namespace });
    this.#objects = new AppliedObjects({ cluster, caches, namespace });
    this.#kinds = new ContextAwareKinds(caches, caches.cache(POLICY_REVISIONS, { namespace }));
    this.#verification = new VerificationConfigs(caches, this.#servers, namespace);
    this.#reports = new ReportStore(options.events);
    this.#grants = new ContextAwareGrants({
      objects: this.#objects,
      kinds: this.#kinds,
      discovery: cluster.discovery,
      settings,
      retryMs: RETRY_MS,
    });
    const labelSelector = MANAGED_BY_SELECTOR;
    const validating = caches.cache(VALIDATING_WEBHOOKS, { labelSelector });
    const mutating = caches.cache(MUTATING_WEBHOOKS, { labelSelector });
    this.#configurations = [validating, mutating];
    this.#controller = new Controller({
      name: this.name,
      concurrency: CONCURRENCY,
      reconcile: (key, signal, attempt) => this.#reconcile(key, signal, attempt),
      watches: [
        watch(this.#servers, { when: [anyOf(generationChanged, annotationsChanged, finalizersChanged)] }),
        ...this.#objects.watches(),
        ...this.#kinds.watches(),
        this.#verification.watch(),
        ...this.#configurations.map((cache) => configurationsGone(cache)),
      ],
      events: { sink: options.events, of: (key) => this.#servers.get(key) },
      log,
      ...(metrics === undefined ? {} : { metrics }),
    });
    this.ready = this.#controller.ready;
    if (registry !== undefined) {
      this.#registerGauges(registry);
    }
  }

  /** Runs until `signal` is aborted. Can be started again. */
  async start(signal: AbortSignal): Promise<void> {
    const unsubscribe = this.#options.certificates?.subscribe(() => {
      for (const { metadata } of this.#servers.list()) {
        this.#controller.enqueue({ name: metadata.name ?? '' }, { priority: LOW_PRIORITY });
      }
    });
    try {
      await this.#controller.start(signal);
    } finally {
      unsubscribe?.();
    }
  }

  isOurs(policyServer: string): boolean {
    return this.#ownership.isOurs(policyServer);
  }

  report(policyServer: string): PolicyServerReport | undefined {
    return this.#reports.get(policyServer);
  }

  subscribe(listener: (policyServer: string) => void): () => void {
    return this.#reports.subscribe(listener);
  }

  async #reconcile(key: ObjectKey, signal: AbortSignal, attempt: ReconcileAttempt): Promise<ReconcileResult> {
    const server = this.#servers.get(key);
    const subject: Subject = { name: key.name, server, failures: new Map(), grant: undefined, verification: {} };
    return await withStatus(
      attempt,
      (failure) => this.#report(subject, failure),
      async () => await runSteps(this.#steps, subject, signal),
    );
  }

  async #remove({ name, server }: Subject, signal: AbortSignal): Promise<LastStep | void> {
    if (server === undefined || isBeingDeleted(server)) {
      await this.#cleanUp(name, server, signal);
      return { isLast: true };
    }
    this.#orphaned.delete(name);
  }

  #release({ server }: Subject): LastStep | void {
    if (server !== undefined && this.#releaseIfForeign(server)) {
      return { isLast: true };
    }
  }

  /** Ends the reconciliation without a valid verification: processes without it would run modules that it excludes. */
  #readVerification(subject: Subject): void {
    subject.verification = subject.server === undefined ? {} : this.#verification.of(subject.server);
  }

  async #grantAccess(subject: Subject, signal: AbortSignal): Promise<void> {
    const { failures, server } = subject;
    try {
      subject.grant = server && (await this.#grants.grant(server, signal));
    } catch (error) {
      signal.throwIfAborted();
      failures.set('ClusterRole', error);
    }
  }

  /** Applies each object independently, so that a failure does not block others. */
  async #applyObjects({ name, server, failures, verification }: Subject, signal: AbortSignal): Promise<void> {
    const objects = server && policyServerObjects(server, this.#options.settings, [], verification);
    for (const { kind } of objects === undefined ? [] : OBJECT_KINDS) {
      if (kind !== 'ClusterRole') {
        await this.#applyOrRemove(kind, name, objects?.[kind], signal).catch((error: unknown) => {
          signal.throwIfAborted();
          failures.set(kind, error);
        });
      }
    }
  }

  #throwFailures({ failures, grant }: Subject): ReconcileResult {
    const failure = worstFailure(failures.values().filter((error) => !(error instanceof NameTaken)));
    if (failure !== undefined) {
      throw failure;
    }
    const isIncomplete = failures.size > 0 || grant === undefined || grant.refused.length + grant.unknown.length > 0;
    return isIncomplete ? { requeueAfterMs: RETRY_MS } : {};
  }

  /** Whether a PolicyServer is foreign. If so, its state is dropped, and the reason logged once. */
  #releaseIfForeign(server: PolicyServerObject): boolean {
    const name = server.metadata.name ?? '';
    const reason = this.#ownership.foreignReason(server);
    if (reason === undefined) {
      this.#foreign.delete(name);
      return false;
    }
    if (this.#foreign.get(name) !== reason) {
      this.#foreign.set(name, reason);
      const hint = `annotation ${ANNOTATIONS.takeOver}=true makes it Portcullis'`;
      this.#options.log.info({ policyServer: name, reason, hint }, 'PolicyServer belongs to another controller');
    }
    this.#forget(name);
    return true;
  }

  async #applyOrRemove(
    kind: ObjectKind,
    name: string,
    wanted: JsonObject | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const isWritten =
      wanted === undefined
        ? await this.#objects.remove(kind, name, signal)
        : await this.#objects.apply(kind, name, wanted, signal);
    if (isWritten) {
      const what = wanted === undefined ? 'object of a PolicyServer removed' : 'object of a PolicyServer written';
      this.#options.log.info({ policyServer: name, kind }, what);
    }
  }

  #objectConditions(
    server: PolicyServerObject,
    failures: ReadonlyMap<ObjectKind, unknown>,
  ): readonly ReportedCondition[] {
    const deployment = this.#deploymentOf(server.metadata.name ?? '');
    const failure = deployment === undefined ? undefined : deploymentFailure(deployment);
    return [...new Set(Object.values(OBJECT_CONDITIONS))].map((type) => {
      const [failed, ...others] = [...failures].filter(([kind]) => OBJECT_CONDITIONS[kind] === type);
      if (failed !== undefined) {
        const reason = failed[1] instanceof NameTaken ? OBJECT_REASONS.nameTaken : OBJECT_REASONS.failed;
        const messages = [failed, ...others].map(([kind, error]) => `${kind}: ${errorText(error)}`);
        return condition(type, 'False', reason, messages.join('; '));
      }
      return type === OBJECT_CONDITIONS.Deployment && failure !== undefined
        ? condition(type, 'False', failure.reason, failure.message)
        : condition(type, 'True', OBJECT_REASONS.succeeded, '');
    });
  }

  /**
   * Removes the objects of a deleted PolicyServer. Its processes keep running while policies name it or webhooks refer
   * to it, so that enforcement does not end before.
   */
  async #cleanUp(name: string, server: PolicyServerObject | undefined, signal: AbortSignal): Promise<void> {
    this.#forget(name);
    this.#foreign.delete(name);
    if (server?.metadata.annotations?.[ANNOTATIONS.takeOver] === 'true') {
      await this.#removeFinalizers(server, signal);
    }
    if (!this.#objects.hasAny(name)) {
      this.#orphaned.delete(name);
      return;
    }
    const isCovered = this.#configurations.some((cache) =>
      cache.list().some(({ metadata }) => metadata.labels?.[POLICY_SERVER_LABEL] === name),
    );
    const policies = this.#kinds.countPolicies(name);
    if (isCovered || policies > 0) {
      const fields = { policyServer: name, policies };
      this.#orphaned.add(name);
      this.#options.log.warn(fields, 'PolicyServer deleted, its processes keep running for its policies');
      return;
    }
    this.#orphaned.delete(name);
    for (const { kind } of OBJECT_KINDS.toReversed()) {
      await this.#applyOrRemove(kind, name, undefined, signal);
    }
    const { certificateMode = 'own', cluster, settings } = this.#options;
    if (certificateMode === 'own') {
      await removeLeafSecrets(cluster, settings.namespace, name, signal);
    }
  }

  /** Removes Kubewarden's finalizers from a deleted PolicyServer that was taken over: no other controller would. */
  async #removeFinalizers({ metadata }: PolicyServerObject, signal: AbortSignal): Promise<void> {
    const { finalizers = [], name = '', resourceVersion = '' } = metadata;
    const kept = finalizers.filter((one) => !KUBEWARDEN_FINALIZERS.has(one));
    if (kept.length < finalizers.length) {
      const body = { metadata: { finalizers: kept, resourceVersion } };
      await unlessGone(this.#options.cluster.patch(POLICY_SERVERS, { name }, { type: 'merge', body }, { signal }));
    }
  }

  /** Publishes the report. For a PolicyServer in deletion, only a failure is reported. */
  #report({ name, server, failures, grant }: Subject, failure: Readiness | undefined): Promise<ReconcileResult> {
    const { certificates, settings } = this.#options;
    if (server !== undefined && this.isOurs(name) && (!isBeingDeleted(server) || failure !== undefined)) {
      const { metadata, spec } = server;
      const conditions = isBeingDeleted(server)
        ? []
        : failure !== undefined && VERIFICATION_REASONS.has(failure.reason)
          ? [condition(OBJECT_CONDITIONS.Deployment, 'False', failure.reason, failure.message)]
          : [
              ...this.#objectConditions(server, failures),
              ...(certificates === undefined ? [] : certificateConditions(name, certificates)),
              supportCondition(server, settings),
              ...(grant === undefined ? [] : [grantCondition(grant)]),
            ];
      const deployment = this.#deploymentOf(name);
      this.#reports.set(server, {
        generation: metadata.generation ?? 0,
        image: runningImage(spec.image, settings.image),
        moduleCache: moduleCacheOf(spec, name).kind,
        conditions,
        readyPods: deployment === undefined ? undefined : readyPods(deployment),
        rollout: deployment === undefined ? undefined : rolloutProgress(deployment),
        failure,
      });
    }
    return Promise.resolve({});
  }

  #deploymentOf(name: string): Deployment | undefined {
    const { namespace } = this.#options.settings;
    return this.#objects.deployment({ namespace, name: policyServerObjectName(name) });
  }

  #forget(name: string): void {
    this.#grants.forget(name);
    this.#reports.delete(name);
  }

  #registerGauges(registry: Registry): void {
    const counts = {
      portcullis_foreign_policy_servers: {
        help: 'PolicyServers that belong to another controller',
        count: () => this.#foreign.size,
      },
      portcullis_orphaned_policy_servers: {
        help: 'Deleted PolicyServers whose processes keep running for their policies',
        count: () => this.#orphaned.size,
      },
    };
    for (const [name, { help, count }] of Object.entries(counts)) {
      const gauge = new Gauge({
        name,
        help,
        registers: [registry],
        collect() {
          this.set(count());
        },
      });
      gauge.set(0);
    }
  }
}

function isBeingDeleted({ metadata }: PolicyServerObject): boolean {
  return metadata.deletionTimestamp !== undefined;
}

function supportCondition({ spec }: PolicyServerObject, { image }: PolicyServerSettings): ReportedCondition {
  const unused = unusedFields(spec, image);
  return unused.length === 0
    ? condition(SPEC_SUPPORTED_CONDITION, 'True', OBJECT_REASONS.allFieldsUsed, '')
    : condition(
        SPEC_SUPPORTED_CONDITION,
        'False',
        OBJECT_REASONS.fieldsNotUsed,
        unused.map(({ field, message }) => `${field} ${message}`).join('; '),
      );
}

function condition(type: string, status: 'True' | 'False', reason: string, message: string): ReportedCondition {
  return { type, status, reason, message };
}

const finalizersChanged: Predicate = ({ before, after }) =>
  !isDeepStrictEqual(before?.metadata.finalizers, after?.metadata.finalizers);

/** Watches for removed webhook configurations, after which a deleted PolicyServer can be cleaned up. */
function configurationsGone(cache: ObjectCache): Watch {
  return watch(cache, {
    keys: ({ metadata }) => {
      const name = metadata.labels?.[POLICY_SERVER_LABEL];
      return name === undefined ? [] : [{ name }];
    },
    when: [({ after }) => after === undefined],
  });
}
