import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { Cluster } from '../cluster/index.ts';
import {
  type AccessRule,
  type AdmissionPolicyObject,
  ANNOTATIONS,
  DEFAULT_EXEMPT_NAMESPACES,
  keyOf,
  type ObjectKey,
  POLICY_KINDS,
  POLICY_REVISIONS,
  POLICY_SERVERS,
  policyId,
  type PolicyServerObject,
  MANAGED_BY_SELECTOR,
} from '../resources/index.ts';
import {
  aborted,
  annotationsChanged,
  anyOf,
  Controller,
  type EventSink,
  generationChanged,
  LOW_PRIORITY,
  type ObjectCache,
  type ObjectIndex,
  withWriteBackoff,
  type Runnable,
  type RuntimeMetrics,
  type SharedCaches,
  watch,
} from '../runtime/index.ts';
import { errorText } from '../values/index.ts';
import type { PolicyCopies } from './copies/policy-copies.ts';
import { AnnotationWarnings } from './annotation-warnings.ts';
import { LifecycleMetrics } from './lifecycle-metrics.ts';
import { MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS } from './webhooks/webhook-kinds.ts';
import { PolicyReconciler } from './policy-reconciler.ts';
import { Prevalidations } from './prevalidations.ts';
import type { ReplicaChange, ReplicaDirectory } from './replicas/replica-directory.ts';
import { ReportPace } from './replicas/report-pace.ts';
import { parseRolloutAnnotations, RevisionStore, type RolloutSettings } from '../rollout/index.ts';
import type { PolicyReference } from './webhooks/enforcement-records.ts';
import type { PolicyTypeChecks } from './type-checks/policy-type-checks.ts';
import { TypeCheckReports } from './type-checks/type-check-reports.ts';
import { PolicyWebhooks } from './webhooks/policy-webhooks.ts';
import type { WebhookTarget } from './webhooks/webhook-object.ts';
import type { WritePace } from './webhooks/write-pace.ts';

/** Concurrent reconciliations of policies of one kind. They mostly wait for API servers. */
const CONCURRENCY = 8;
/** Delay that collects changes of copies of the modules of one policy into one write of its status. Milliseconds. */
const COPIES_GATHER_MS = 1_000;

export interface LifecycleOptions {
  /** A client with the rights of `CONTROLLER_RULES`. */
  readonly cluster: Cluster;
  readonly caches: SharedCaches;
  /** The namespace of the product, with the PolicyRevisions. */
  readonly namespace: string;
  /** Defaults for annotations that are absent. */
  readonly settings: RolloutSettings;
  readonly replicas: ReplicaDirectory;
  /**
   * Where API servers reach the replicas of a PolicyServer. While undefined, its webhooks stay as they are. Call
   * `targetsChanged` when the result may differ.
   */
  readonly target: (policyServer: string) => WebhookTarget | undefined;
  /** Whether API servers reach a PolicyServer. Call `targetsChanged` when the result may differ. Default: always. */
  readonly isReachable?: (policyServer: string) => boolean;
  /** Namespaces that cluster-wide policies do not cover. Default: {@link DEFAULT_EXEMPT_NAMESPACES}. */
  readonly exemptNamespaces?: readonly string[];
  /**
   * User names of the product, whose requests no policy sees; a `*` at the end matches any suffix. Call `targetsChanged` when
   * they may differ. Default: none.
   */
  readonly identities?: Iterable<string>;
  /** Access rules of further controllers of the product, whose requests no policy sees. Default: none. */
  readonly furtherRules?: readonly AccessRule[];
  /** Whether this controller enforces the policies of a PolicyServer. It does not touch others. Default: always. */
  readonly isOurs?: (policyServer: string) => boolean;
  /** Rate limit of the writes of webhook configurations, one for each policy server. Default: a {@link WritePace}. */
  readonly pace?: () => WritePace;
  /** Where modules are, besides on replicas. Default: that is not known. */
  readonly copies?: Pick<PolicyCopies, 'of' | 'subscribe'>;
  /** Compares policies with the kinds of the cluster. Default: they are not compared. */
  readonly typeChecks?: Pick<PolicyTypeChecks, 'check'>;
  readonly events: EventSink;
  /** Default: MONITORED_INTERVAL_MS of {@link PolicyReports}. */
  readonly monitoredIntervalMs?: number;
  /** See RevisionStoreOptions. */
  readonly isAudited?: boolean;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics;
  /** For metrics of policies and rollouts. Default: no metrics. */
  readonly registry?: Registry;
}

interface Kind {
  readonly kind: string;
  readonly policies: ObjectCache<AdmissionPolicyObject>;
  readonly byId: ObjectIndex<AdmissionPolicyObject>;
  readonly byServer: ObjectIndex<AdmissionPolicyObject>;
  readonly controller: Controller;
}

/** The controllers of admission policies: revisions, rollouts, status, webhook configurations. One leader runs them. */
export class LifecycleControllers implements Runnable {
  readonly name = 'policies';
  readonly ready: Promise<void>;
  readonly #replicas: ReplicaDirectory;
  readonly #kinds: readonly Kind[];
  readonly #prevalidations: Prevalidations;
  readonly #warnings: AnnotationWarnings;
  readonly #policyServers: ObjectCache<PolicyServerObject>;
  readonly #webhooks: PolicyWebhooks;
  readonly #typeChecks: TypeCheckReports | undefined;
  readonly #copies: LifecycleOptions['copies'];
  readonly #pace = new ReportPace();
  readonly #isReady = Promise.withResolvers<void>();

  constructor(options: LifecycleOptions) {
    const { cluster, caches, namespace, log } = options;
    this.ready = this.#isReady.promise;
    this.#replicas = options.replicas;
    this.#copies = options.copies;
    const labelSelector = MANAGED_BY_SELECTOR;
    const validating = caches.cache(VALIDATING_WEBHOOKS, { labelSelector });
    const mutating = caches.cache(MUTATING_WEBHOOKS, { labelSelector });
    const policyServers = caches.cache(POLICY_SERVERS);
    const revisions = caches.cache(POLICY_REVISIONS, { namespace });
    this.#policyServers = policyServers;
    this.#warnings = new AnnotationWarnings(options.events);
    this.#prevalidations = new Prevalidations({
      replicas: options.replicas,
      requeue: (policy) => this.#enqueue(policy),
      failed: (policy, error) => log.warn({ policy, error: errorText(error) }, 'pre-validation failed'),
    });
    this.#webhooks = new PolicyWebhooks({
      exemptNamespaces: DEFAULT_EXEMPT_NAMESPACES,
      identities: [],
      ...options,
      productNamespace: namespace,
      cluster: withWriteBackoff(options.cluster, options),
      validating,
      mutating,
      requeue: (policy) => this.#requeue(policy),
    });
    const { registry, metrics: _, typeChecks: checks, ...rest } = options;
    this.#typeChecks =
      checks &&
      new TypeCheckReports({ checks, openApi: cluster.openApi, requeue: (policy) => this.#enqueue(policy), log });
    const all = (): readonly AdmissionPolicyObject[] => POLICY_KINDS.flatMap((kind) => caches.cache(kind).list());
    const audited = options.isAudited === undefined ? {} : { isAudited: options.isAudited };
    const shared = {
      ...rest,
      ...(registry === undefined ? {} : { metrics: new LifecycleMetrics(registry, all) }),
      policyServers,
      revisions: new RevisionStore({ ...audited, cluster, cache: revisions, namespace }),
      webhooks: this.#webhooks,
      prevalidations: this.#prevalidations,
      warnings: this.#warnings,
      typeChecks: this.#typeChecks,
    };
    this.#kinds = POLICY_KINDS.map((kind) => {
      const policies = caches.cache(kind);
      const byId = policies.index((policy) => [policyId(policy)]);
      const byServer = policies.index(({ spec }) => [spec.policyServer ?? 'default']);
      const reconciler = new PolicyReconciler(kind, { ...shared, policies });
      const controller = new Controller({
        name: kind.resource,
        concurrency: CONCURRENCY,
        reconcile: (key, signal, attempt) => reconciler.reconcile(key, signal, attempt),
        watches: [
          watch(policies, { when: [anyOf(generationChanged, annotationsChanged)] }),
          watch(revisions, {
            // A revision that somebody else wrote may have the id of another policy.
            keys: ({ spec: { policy, policyId: id } }) => [
              ...(policy.kind === kind.kind ? [policyKey(policy)] : []),
              ...byId.get(id).map((one) => keyOf(one)),
            ],
          }),
          watch(policyServers, {
            keys: (server: PolicyServerObject) =>
              byServer.get(server.metadata.name ?? '').map((policy) => keyOf(policy)),
            when: [
              ({ before, after }) => before === undefined || after === undefined || settingsChanged(before, after),
            ],
          }),
        ],
        events: { sink: options.events, of: (key) => policies.get(key) },
        log,
        ...(options.metrics === undefined ? {} : { metrics: options.metrics }),
      });
      return { kind: kind.kind, policies, byServer, byId, controller };
    });
  }

  /** Runs until `signal` is aborted; may then be started again. */
  async start(signal: AbortSignal): Promise<void> {
    const ends = [
      this.#replicas.subscribe((change) => this.#replicasChanged(change)),
      this.#policyServers.subscribe(({ before, after }) => this.#warnOfAnnotations(before, after)),
      ...(this.#copies === undefined ? [] : [this.#copies.subscribe((policies) => this.#copiesChanged(policies))]),
    ];
    const running = [
      this.#webhooks,
      ...(this.#typeChecks === undefined ? [] : [this.#typeChecks]),
      ...this.#kinds.map(({ controller }) => controller),
    ].map((one) => one.start(signal));
    try {
      await Promise.race([
        aborted(signal),
        Promise.all([this.#webhooks.ready, ...this.#kinds.map(({ controller }) => controller.ready)]),
        ...running,
      ]);
      if (!signal.aborted) {
        this.#webhooks.expect(this.#kinds.flatMap(({ policies }) => policies.list().map((policy) => policyId(policy))));
      }
      this.#isReady.resolve();
      await Promise.all(running);
    } finally {
      for (const end of ends) {
        end();
      }
      this.#prevalidations.cancelAll();
    }
  }

  /** Updates webhooks after a change of targets or exempt identities: a renewed certificate, a Service that is reached. */
  targetsChanged(): void {
    this.#webhooks.targetsChanged();
  }

  /** Reconciles the policies of a PolicyServer after `isOurs` may have changed for it. */
  policyServerChanged(policyServer: string): void {
    this.#replicasChanged({ policyServer, policies: 'all' });
    this.#webhooks.targetsChanged();
  }

  /** Reports invalid annotations on the PolicyServer, not on each of its policies. */
  #warnOfAnnotations(before: PolicyServerObject | undefined, after: PolicyServerObject | undefined): void {
    if (after !== undefined) {
      this.#warnings.report(after, parseRolloutAnnotations(after.metadata.annotations).problems);
    } else if (before !== undefined) {
      this.#warnings.forget(before);
    }
  }

  #replicasChanged({ policyServer, policies }: ReplicaChange): void {
    if (policies !== 'all') {
      for (const policy of policies) {
        this.#reported(policyServer, policy);
      }
      return;
    }
    for (const { byServer, controller } of this.#kinds) {
      for (const policy of byServer.get(policyServer)) {
        controller.enqueue(keyOf(policy), { priority: LOW_PRIORITY });
      }
    }
  }

  #requeue({ kind, key }: PolicyReference): void {
    this.#kinds.find((one) => one.kind === kind)?.controller.enqueue(key);
  }

  /** A replica may report on policies that do not exist, or of another PolicyServer: nobody waits for that. */
  #reported(policyServer: string, id: string): void {
    const policies = this.#kinds.flatMap(({ byId }) => byId.get(id));
    if (policies.some(({ spec }) => (spec.policyServer ?? 'default') === policyServer)) {
      this.#enqueue(id, this.#pace.delayMs(policyServer, performance.now()));
    } else {
      const counts = this.#replicas.monitored.of(id).filter((one) => one.policyServer === policyServer);
      this.#replicas.monitored.drop(counts);
    }
  }

  /** Of thousands of policies, when a controller starts or ends: nothing waits for their statuses. */
  #copiesChanged(policies: ReadonlySet<string>): void {
    for (const id of policies) {
      for (const { byId, controller } of this.#kinds) {
        for (const policy of byId.get(id)) {
          controller.enqueue(keyOf(policy), { afterMs: COPIES_GATHER_MS, priority: LOW_PRIORITY });
        }
      }
    }
  }

  #enqueue(id: string, afterMs = 0): void {
    for (const { byId, controller } of this.#kinds) {
      for (const policy of byId.get(id)) {
        controller.enqueue(keyOf(policy), { afterMs });
      }
    }
  }
}

function policyKey({ name, namespace }: { readonly name: string; readonly namespace?: string }): ObjectKey {
  return namespace === undefined ? { name } : { namespace, name };
}

/** Whether annotations for rollouts differ. */
function settingsChanged(before: PolicyServerObject, after: PolicyServerObject): boolean {
  const annotations = [
    ANNOTATIONS.rolloutStrategy,
    ANNOTATIONS.disarmed,
    ANNOTATIONS.progressDeadline,
    ANNOTATIONS.revisionHistoryLimit,
    ANNOTATIONS.takeOver,
  ];
  return annotations.some((key) => before.metadata.annotations?.[key] !== after.metadata.annotations?.[key]);
}
