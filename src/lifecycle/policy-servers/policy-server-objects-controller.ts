// Keeps the objects of PolicyServers in a cluster as they are to be.
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { Gauge, type Registry } from 'prom-client';
import { type Cluster, unlessGone } from '../../cluster/index.ts';
import {
  ANNOTATIONS,
  type JsonObject,
  type ObjectKey,
  POLICY_REVISIONS,
  POLICY_SERVER_LABEL,
  POLICY_SERVERS,
  type PolicyServer,
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
  Stalled,
  type Watch,
  watch,
  withStatus,
  worstFailure,
} from '../../runtime/index.ts';
import { MANAGED_BY_SELECTOR } from '../managed-by.ts';
import { MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS } from '../policy-kinds.ts';
import { errorText } from '../../values/index.ts';
import { AppliedObjects, NameTaken } from './applied-objects.ts';
import { type ContextAwareGrant, grantCondition } from './context-aware-grant.ts';
import { certificateConditions, type CertificateState } from './certificate-conditions.ts';
import { ContextAwareGrants } from './context-aware-grants.ts';
import { ContextAwareKinds } from './context-aware-kinds.ts';
import { deploymentTrouble, rolloutProgress } from './deployment-trouble.ts';
import { moduleCacheOf } from './module-cache-volume.ts';
import { type Deployment, KUBEWARDEN_FINALIZERS, PolicyServerOwnership } from './ownership.ts';
import {
  OBJECT_CONDITIONS,
  OBJECT_REASONS,
  type PolicyServerReport,
  type PolicyServerReports,
  type ReportedCondition,
  SPEC_SUPPORTED_CONDITION,
} from './policy-server-conditions.ts';
import { policyServerObjectName } from './policy-server-names.ts';
import { OBJECT_KINDS, type ObjectKind, policyServerObjects } from './policy-server-objects.ts';
import type { PolicyServerSettings } from './policy-server-settings.ts';
import { removeLeafSecrets } from './leaf-secrets.ts';
import { ReportBoard } from './report-board.ts';
import { runningImage } from './running-image.ts';
import { unusedFields, whyNotRun } from './spec-support.ts';

/** PolicyServers that are worked on at once: one whose objects the API server is slow to take holds up no other. */
const CONCURRENCY = 4;
/**
 * When what nobody tells of is looked at again: rights that the controller may have got, kinds that the cluster may serve, a
 * name that may be free. Milliseconds.
 */
const AGAIN_MS = 5 * 60_000;

export interface PolicyServerObjectsControllerOptions {
  /** Seen with the rights of `POLICY_SERVER_RULES`, `POLICY_SERVER_NAMESPACE_RULES`, and those for certificates of its mode. */
  readonly cluster: Cluster;
  readonly caches: SharedCaches;
  readonly settings: PolicyServerSettings;
  /** What is told of certificates. Default: nothing. */
  readonly certificates?: CertificateState;
  /** Who keeps the Secrets: `own` ones go with a PolicyServer; `external` ones are left to whoever made them. Default: `own`. */
  readonly certificateMode?: 'own' | 'external';
  readonly events: EventSink;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics;
  /** Where PolicyServers of other controllers are counted. Default: nowhere. */
  readonly registry?: Registry;
}

/** What the steps of one reconciliation share. */
interface Subject {
  readonly name: string;
  /** As it was when the reconciliation began. Undefined: it is gone. */
  readonly server: PolicyServer | undefined;
  /** Of objects that could not be written. */
  readonly failures: Map<ObjectKind, unknown>;
  grant: ContextAwareGrant | undefined;
}

/**
 * Makes the Deployment and all other objects of every PolicyServer that is ours, mends them, and removes them when neither the
 * PolicyServer nor any of its policies is there any more. Only a leader runs it.
 */
export class PolicyServerObjectsController implements Runnable, PolicyServerReports {
  readonly name = 'policyserver-objects';
  readonly ready: Promise<void>;
  readonly #options: PolicyServerObjectsControllerOptions;
  readonly #servers: ObjectCache<PolicyServer>;
  readonly #ownership: PolicyServerOwnership;
  readonly #objects: AppliedObjects;
  readonly #kinds: ContextAwareKinds;
  readonly #configurations: readonly ObjectCache[];
  readonly #controller: Controller;
  readonly #grants: ContextAwareGrants;
  readonly #reports: ReportBoard;
  readonly #steps: readonly ReconcileStep<Subject>[] = [
    (subject, signal) => this.#remove(subject, signal),
    (subject) => this.#release(subject),
    (subject) => this.#requireSupport(subject),
    (subject, signal) => this.#grantAccess(subject, signal),
    (subject, signal) => this.#applyObjects(subject, signal),
    (subject) => this.#throwFailures(subject),
  ];
  /** Why PolicyServers are another controller's, by name: told once. */
  readonly #foreign = new Map<string, string>();
  /** PolicyServers that are gone, and still needed. */
  readonly #orphaned = new Set<string>();

  constructor(options: PolicyServerObjectsControllerOptions) {
    const { cluster, caches, settings, log, metrics, registry } = options;
    const { namespace } = settings;
    this.#options = options;
    this.#servers = caches.cache(POLICY_SERVERS);
    this.#ownership = new PolicyServerOwnership({ caches, namespace });
    this.#objects = new AppliedObjects({ cluster, caches, namespace });
    this.#kinds = new ContextAwareKinds(caches, caches.cache(POLICY_REVISIONS, { namespace }));
    this.#reports = new ReportBoard(options.events);
    this.#grants = new ContextAwareGrants({
      objects: this.#objects,
      kinds: this.#kinds,
      discovery: cluster.discovery,
      settings,
      againMs: AGAIN_MS,
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
        ...this.#configurations.map((cache) => configurationsGone(cache)),
      ],
      events: { sink: options.events, of: (key) => this.#servers.get(key) },
      log,
      ...(metrics === undefined ? {} : { metrics }),
    });
    this.ready = this.#controller.ready;
    if (registry !== undefined) {
      this.#count(registry);
    }
  }

  /** Runs until `signal` is aborted; may then be started again. */
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
    const subject: Subject = { name: key.name, server: this.#servers.get(key), failures: new Map(), grant: undefined };
    return await withStatus(
      attempt,
      (failure) => this.#report(subject, failure),
      async () => await runSteps(this.#steps, subject, signal),
    );
  }

  async #remove({ name, server }: Subject, signal: AbortSignal): Promise<LastStep | void> {
    if (server === undefined || isBeingDeleted(server)) {
      await this.#retire(name, server, signal);
      return { isLast: true };
    }
    this.#orphaned.delete(name);
  }

  #release({ server }: Subject): LastStep | void {
    if (server !== undefined && this.#leaveAlone(server)) {
      return { isLast: true };
    }
  }

  /** Changes nothing where the spec asks for what must not be left out. */
  #requireSupport({ server }: Subject): void {
    const refusal = server === undefined ? undefined : whyNotRun(server.spec);
    if (refusal !== undefined) {
      throw new Stalled(OBJECT_REASONS.notSupported, refusal);
    }
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

  /** Each object is tried by itself: one that fails holds up no other. */
  async #applyObjects({ name, server, failures }: Subject, signal: AbortSignal): Promise<void> {
    const objects = server && policyServerObjects(server, this.#options.settings, []);
    for (const { kind } of objects === undefined ? [] : OBJECT_KINDS) {
      if (kind !== 'ClusterRole') {
        await this.#make(kind, name, objects?.[kind], signal).catch((error: unknown) => {
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
    return isIncomplete ? { requeueAfterMs: AGAIN_MS } : {};
  }

  /** Whether a PolicyServer is another controller's; told once. */
  #leaveAlone(server: PolicyServer): boolean {
    const name = server.metadata.name ?? '';
    const reason = this.#ownership.foreignReason(server);
    if (reason === undefined) {
      this.#foreign.delete(name);
      return false;
    }
    if (this.#foreign.get(name) !== reason) {
      this.#foreign.set(name, reason);
      const hint = `annotation ${ANNOTATIONS.takeOver}=true makes it Portcullis'`;
      this.#options.log.info({ policyServer: name, reason, hint }, 'a PolicyServer is left to another controller');
    }
    this.#forget(name);
    return true;
  }

  async #make(kind: ObjectKind, name: string, wanted: JsonObject | undefined, signal: AbortSignal): Promise<void> {
    const isWritten =
      wanted === undefined
        ? await this.#objects.remove(kind, name, signal)
        : await this.#objects.apply(kind, name, wanted, signal);
    if (isWritten) {
      const what =
        wanted === undefined ? 'an object of a PolicyServer was removed' : 'an object of a PolicyServer was written';
      this.#options.log.info({ policyServer: name, kind }, what);
    }
  }

  #objectConditions(server: PolicyServer, failures: ReadonlyMap<ObjectKind, unknown>): readonly ReportedCondition[] {
    const deployment = this.#deploymentOf(server.metadata.name ?? '');
    const trouble = deployment === undefined ? undefined : deploymentTrouble(deployment);
    return [...new Set(Object.values(OBJECT_CONDITIONS))].map((type) => {
      const [failed, ...others] = [...failures].filter(([kind]) => OBJECT_CONDITIONS[kind] === type);
      if (failed !== undefined) {
        const reason = failed[1] instanceof NameTaken ? OBJECT_REASONS.nameTaken : OBJECT_REASONS.failed;
        const messages = [failed, ...others].map(([kind, error]) => `${kind}: ${errorText(error)}`);
        return condition(type, 'False', reason, messages.join('; '));
      }
      return type === OBJECT_CONDITIONS.Deployment && trouble !== undefined
        ? condition(type, 'False', trouble.reason, trouble.message)
        : condition(type, 'True', OBJECT_REASONS.succeeded, '');
    });
  }

  /**
   * A PolicyServer that is gone. Its processes stay for as long as policies name it or the API server is told to ask them:
   * what enforces them ends with them, and not before.
   */
  async #retire(name: string, server: PolicyServer | undefined, signal: AbortSignal): Promise<void> {
    this.#forget(name);
    this.#foreign.delete(name);
    if (server?.metadata.annotations?.[ANNOTATIONS.takeOver] === 'true') {
      await this.#removeFinalizers(server, signal);
    }
    if (!this.#objects.hasAny(name)) {
      this.#orphaned.delete(name);
      return;
    }
    const isAsked = this.#configurations.some((cache) =>
      cache.list().some(({ metadata }) => metadata.labels?.[POLICY_SERVER_LABEL] === name),
    );
    const policies = this.#kinds.countPolicies(name);
    if (isAsked || policies > 0) {
      const fields = { policyServer: name, policies };
      this.#orphaned.add(name);
      this.#options.log.warn(fields, 'a PolicyServer is gone, and its processes stay for its policies');
      return;
    }
    this.#orphaned.delete(name);
    for (const { kind } of OBJECT_KINDS.toReversed()) {
      await this.#make(kind, name, undefined, signal);
    }
    const { certificateMode = 'own', cluster, settings } = this.#options;
    if (certificateMode === 'own') {
      await removeLeafSecrets(cluster, settings.namespace, name, signal);
    }
  }

  /** Kubewarden's finalizers on what was taken over would hold it for ever: nobody else removes them. */
  async #removeFinalizers({ metadata }: PolicyServer, signal: AbortSignal): Promise<void> {
    const { finalizers = [], name = '', resourceVersion = '' } = metadata;
    const kept = finalizers.filter((one) => !KUBEWARDEN_FINALIZERS.includes(one));
    if (kept.length < finalizers.length) {
      const body = { metadata: { finalizers: kept, resourceVersion } };
      await unlessGone(this.#options.cluster.patch(POLICY_SERVERS, { name }, { type: 'merge', body }, { signal }));
    }
  }

  /** What the writer of statuses reads. Of a PolicyServer that is being deleted only a failure is of interest. */
  #report({ name, server, failures, grant }: Subject, failure: Readiness | undefined): Promise<ReconcileResult> {
    const { certificates, settings } = this.#options;
    if (server !== undefined && this.isOurs(name) && (!isBeingDeleted(server) || failure !== undefined)) {
      const { metadata, spec } = server;
      const conditions = isBeingDeleted(server)
        ? []
        : failure?.state === 'stalled' && failure.reason === OBJECT_REASONS.notSupported
          ? [SPEC_SUPPORTED_CONDITION, OBJECT_CONDITIONS.Deployment].map((type) =>
              condition(type, 'False', failure.reason, failure.message),
            )
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

  #count(registry: Registry): void {
    const counts = {
      portcullis_foreign_policy_servers: {
        help: 'PolicyServers that are left to another controller',
        count: () => this.#foreign.size,
      },
      portcullis_orphaned_policy_servers: {
        help: 'PolicyServers that are gone, and whose processes stay for their policies',
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

function isBeingDeleted({ metadata }: PolicyServer): boolean {
  return metadata.deletionTimestamp !== undefined;
}

function supportCondition({ spec }: PolicyServer, { image }: PolicyServerSettings): ReportedCondition {
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

/** Nobody is asked any more: what is left of a PolicyServer may go. */
function configurationsGone(cache: ObjectCache): Watch {
  return watch(cache, {
    keys: ({ metadata }) => {
      const name = metadata.labels?.[POLICY_SERVER_LABEL];
      return name === undefined ? [] : [{ name }];
    },
    when: [({ after }) => after === undefined],
  });
}
