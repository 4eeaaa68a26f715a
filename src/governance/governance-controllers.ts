// Assembles the controllers of governance policies.
import type { Logger } from 'pino';
import type { Cluster } from '../cluster/index.ts';
import {
  CERTIFICATE_POLICIES,
  CONFIGURATION_POLICIES,
  type ConfigurationPolicy,
  keyOf,
  keyText,
  type KubernetesObject,
  type ObjectKey,
  POLICIES,
  POLICY_SETS,
  type Policy,
  type PolicySet,
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
  type Predicate,
  type Runnable,
  type RuntimeMetrics,
  type SharedCaches,
  watch,
  withWriteBackoff,
} from '../runtime/index.ts';
import { GovernanceReviews } from './admission/governance-reviews.ts';
import { CertificateReconciler, isSelectionChange } from './enforcement/certificate-reconciler.ts';
import { ClusterNamespace, NAMESPACES } from './cluster-namespace.ts';
import { objectId, readDependencies, requirementOf } from './dependencies/index.ts';
import { DependencyGraphs, policySetKeys } from './dependency-graphs.ts';
import { ConfigurationReconciler } from './enforcement/configuration-reconciler.ts';
import { EvaluationLanes } from './evaluation/evaluation-lanes.ts';
import type { GovernanceSettings } from './governance-settings.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, KindMappings, withoutSchemas } from './objects/kind-mappings.ts';
import { MissingKinds } from './objects/missing-kinds.ts';
import { WatchedKinds } from './objects/watched-kinds.ts';
import type { OtherControllers } from './other-controllers.ts';
import { PolicySetReconciler } from './propagation/policy-set-reconciler.ts';
import { HubTemplates } from './propagation/hub-templates.ts';
import { PropagationReconciler } from './propagation/propagation-reconciler.ts';
import { copyName, rootOf } from './propagation/replicated-policy.ts';
import { DependencyObjects } from './template-sync/dependency-objects.ts';
import { TemplateKinds } from './template-sync/template-kinds.ts';
import { TemplatePlans } from './template-sync/template-plans.ts';
import { TemplateSyncReconciler } from './template-sync/template-sync-reconciler.ts';

/** The definitions with which ConfigurationPolicies are deleted. */
const OWN_DEFINITIONS = [POLICIES, CONFIGURATION_POLICIES].map(({ group, resource }) => `${resource}.${group}`);

/** Concurrent reconciliations of one kind. They mostly wait for API servers. */
const CONCURRENCY = 8;

export interface GovernanceOptions {
  /** A client with the rights of `GOVERNANCE_CONTROLLER_RULES`. */
  readonly cluster: Cluster;
  /** The cluster as the governance account, whose rights administrators grant. */
  readonly governed: Cluster;
  readonly caches: SharedCaches;
  readonly settings: GovernanceSettings;
  /** Controllers that must not run at the same time: while one runs, these do nothing. Default: none. */
  readonly others?: Pick<OtherControllers, 'running' | 'whileNone'>;
  readonly events: EventSink;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics;
  /** Whether differences in statuses are complete, for dry runs. Default: their first lines. */
  readonly fullDiffs?: boolean;
}

/** The controllers of Policies, PolicySets and the kinds of their templates. One leader runs them. */
export class GovernanceControllers implements Runnable {
  readonly name = 'governance';
  /** Resolves when they run, or when another controller prevents that. */
  readonly ready: Promise<void>;
  /** The rules for writes of governance kinds; they use caches only. */
  readonly reviews: GovernanceReviews;
  readonly #options: GovernanceOptions;
  readonly #policies: ObjectCache<Policy>;
  readonly #policySets: ObjectCache<PolicySet>;
  readonly #own: readonly ObjectCache[];
  readonly #watched: WatchedKinds;
  readonly #mappings: KindMappings;
  readonly #graphs: DependencyGraphs;
  readonly #propagation: Controller;
  readonly #sets: Controller;
  readonly #sync: Controller;
  readonly #configuration: Controller;
  readonly #certificates: Controller;
  /** Kinds that templates of the hub miss, templates and dependencies, and ConfigurationPolicies. */
  readonly #missing = {
    propagation: new MissingKinds(),
    sync: new MissingKinds(),
    configuration: new MissingKinds(),
  };
  readonly #evaluations: EvaluationLanes;
  readonly #isReady = Promise.withResolvers<void>();

  constructor(options: GovernanceOptions) {
    const { cluster, log } = options;
    this.#options = {
      ...options,
      cluster: withWriteBackoff(cluster, { log }),
      governed: withWriteBackoff(options.governed, { log }),
    };
    this.ready = this.#isReady.promise;
    const { caches, settings, governed } = this.#options;
    this.#policies = caches.cache(POLICIES);
    this.#policySets = caches.cache(POLICY_SETS);
    const namespace = settings.clusterName;
    this.#own = [CONFIGURATION_POLICIES, CERTIFICATE_POLICIES].map((kind) =>
      caches.cache<KubernetesObject>(kind, { namespace }),
    );
    const definitions = caches.cache(CUSTOM_RESOURCE_DEFINITIONS, { transform: withoutSchemas });
    this.#evaluations = new EvaluationLanes(log);
    this.#watched = new WatchedKinds({ cluster: governed, log });
    this.#mappings = new KindMappings(options.cluster.discovery, definitions);
    const sources = { settings, policies: this.#policies, policySets: this.#policySets };
    this.#graphs = new DependencyGraphs(sources);
    this.reviews = new GovernanceReviews({
      settings,
      policies: this.#policies,
      graphs: this.#graphs,
      isSilent: () => (options.others?.running() ?? []).length > 0,
    });
    this.#propagation = this.#propagationController();
    this.#sets = this.#setController();
    this.#sync = this.#syncController();
    this.#configuration = this.#configurationController();
    this.#certificates = this.#certificateController();
  }

  /** Runs until `signal` is aborted; may then be started again. */
  async start(signal: AbortSignal): Promise<void> {
    const { others } = this.#options;
    await (others === undefined
      ? this.#run(signal)
      : others.whileNone(
          signal,
          (alone) => this.#run(alone),
          () => this.#isReady.resolve(),
        ));
  }

  /** Whether all queues are empty. Changes that the caches do not show yet may add work. */
  get isIdle(): boolean {
    return this.#evaluations.isIdle && this.#controllers.every(({ isIdle }) => isIdle);
  }

  get #controllers(): readonly Controller[] {
    return [this.#propagation, this.#sets, this.#sync, this.#configuration, this.#certificates];
  }

  async #run(signal: AbortSignal): Promise<void> {
    const definitions = this.#options.caches.cache(CUSTOM_RESOURCE_DEFINITIONS, { transform: withoutSchemas });
    const ends = [
      this.#missing.propagation.follow(definitions, (key) => this.#propagation.enqueue(key)),
      this.#missing.sync.follow(definitions, (key) => this.#sync.enqueue(key)),
      this.#missing.configuration.follow(definitions, (key) => this.#configuration.enqueue(key)),
      this.#graphs.subscribe(() => this.#graphChanged()),
    ];
    const controllers = this.#controllers;
    const running = [this.#watched, this.#evaluations, ...controllers].map((one) => one.start(signal));
    try {
      await Promise.race([aborted(signal), Promise.all(controllers.map(({ ready }) => ready)), ...running]);
      this.#isReady.resolve();
      await Promise.all(running);
    } finally {
      for (const end of ends) {
        end();
      }
    }
  }

  /** Findings about dependencies can change with any Policy. */
  #graphChanged(): void {
    for (const copy of this.#policies.list(this.#options.settings.clusterName)) {
      if (requirementsOf(copy, this.#options.settings.clusterName).length > 0) {
        this.#sync.enqueue(keyOf(copy), { priority: LOW_PRIORITY });
      }
    }
  }

  #propagationController(): Controller {
    const { cluster, caches, settings, events } = this.#options;
    const policies = this.#policies;
    const policySets = this.#policySets;
    const namespaces = caches.cache(NAMESPACES);
    const bySet = policies.index((policy) => (this.#isCopied(policy) ? [] : policySetKeys(policy)));
    const reconciler = new PropagationReconciler({
      cluster,
      settings,
      policies,
      policySets,
      namespace: new ClusterNamespace(cluster, namespaces, settings.clusterName),
      hubTemplates: new HubTemplates({
        clusterName: settings.clusterName,
        mappings: this.#mappings,
        reader: this.#watched.reader((key) => this.#propagation.enqueue(key)),
        missing: this.#missing.propagation,
        evaluations: this.#evaluations,
        wake: (key) => this.#propagation.enqueue(key),
      }),
      events,
    });
    return this.#controller('governance-policies', {
      reconcile: (key, signal, attempt) => reconciler.reconcile(key, signal, attempt),
      watches: [
        watch(policies, { keys: (policy) => (this.#isCopied(policy) ? [] : [keyOf(policy)]), when: [specChanged] }),
        watch(policies, { keys: (policy) => (this.#isCopied(policy) ? rootKeys(policy) : []) }),
        watch(policySets, {
          keys: (set) => bySet.get(keyText(keyOf(set))).map(keyOf),
          when: [generationChanged],
        }),
        watch(namespaces, {
          keys: ({ metadata }) =>
            metadata.name === settings.clusterName
              ? policies
                  .list()
                  .filter((policy) => !this.#isCopied(policy))
                  .map(keyOf)
              : [],
        }),
      ],
    });
  }

  #setController(): Controller {
    const policies = this.#policies;
    const policySets = this.#policySets;
    const byMember = policySets.index(({ metadata, spec }) =>
      spec.policies.map((name) => `${metadata.namespace ?? ''}/${name}`),
    );
    const reconciler = new PolicySetReconciler({
      cluster: this.#options.cluster,
      policies,
      policySets,
      events: this.#options.events,
    });
    return this.#controller('governance-policy-sets', {
      reconcile: (key, signal) => reconciler.reconcile(key, signal),
      watches: [
        watch(policySets, { when: [generationChanged] }),
        watch(policies, {
          keys: ({ metadata }) => byMember.get(`${metadata.namespace ?? ''}/${metadata.name ?? ''}`).map(keyOf),
        }),
      ],
      events: { sink: this.#options.events, of: (key) => policySets.get(key) },
    });
  }

  #syncController(): Controller {
    const { cluster, governed, caches, settings, events } = this.#options;
    const policies = this.#policies;
    const mappings = this.#mappings;
    const reader = this.#watched.reader((key) => this.#sync.enqueue(key));
    const kinds = new TemplateKinds({ cluster, governed, mappings, reader, own: this.#own });
    const own = [caches.cache<KubernetesObject>(POLICIES), ...this.#own];
    const dependents = policies.index((copy) => requirementsOf(copy, settings.clusterName));
    const plans = new TemplatePlans({
      clusterName: settings.clusterName,
      kinds,
      dependencies: new DependencyObjects({ mappings, reader, policies, own }),
      reader,
      missing: this.#missing.sync,
      graph: () => this.#graphs.current(),
    });
    const reconciler = new TemplateSyncReconciler({
      cluster,
      settings,
      policies,
      plans,
      kinds,
      graphs: this.#graphs,
      events,
    });
    const dependentsOf = (object: KubernetesObject): readonly ObjectKey[] =>
      dependents.get(objectKeyText(object)).map(keyOf);
    const templates = this.#own.map((cache) =>
      watch(cache, { keys: (object) => [...ownerKeys(object), ...dependentsOf(object)] }),
    );
    return this.#controller('governance-templates', {
      reconcile: (key, signal, attempt) => reconciler.reconcile(key, signal, attempt),
      watches: [
        watch(policies, { keys: (policy) => (this.#isCopied(policy) ? [keyOf(policy)] : []), when: [specChanged] }),
        // A dependency is on a copy, and its verdict counts once the copy has the spec of its root.
        watch(policies, {
          keys: (policy) =>
            this.#isCopied(policy)
              ? dependentsOf(policy)
              : dependents.get(copyKeyText(keyOf(policy), settings.clusterName)).map(keyOf),
        }),
        ...templates,
      ],
    });
  }

  #configurationController(): Controller {
    const { cluster, governed, caches, settings, events, log } = this.#options;
    const namespace = settings.clusterName;
    const policies = caches.cache(CONFIGURATION_POLICIES, { namespace });
    const namespaces = caches.cache(NAMESPACES);
    const definitions = caches.cache(CUSTOM_RESOURCE_DEFINITIONS, { transform: withoutSchemas });
    const reconciler = new ConfigurationReconciler({
      cluster,
      governed,
      policies,
      mappings: this.#mappings,
      reader: this.#watched.reader((key) => this.#configuration.enqueue(key)),
      missing: this.#missing.configuration,
      namespaces,
      evaluations: this.#evaluations,
      ownerOf,
      wake: (key) => this.#configuration.enqueue(key),
      isRemoved: () =>
        [namespaces.get({ name: namespace }), ...OWN_DEFINITIONS.map((name) => definitions.get({ name }))].some(
          (object) => object?.metadata.deletionTimestamp !== undefined,
        ),
      events,
      log,
      fullDiffs: this.#options.fullDiffs ?? false,
    });
    return this.#controller('governance-configuration', {
      reconcile: (key, signal, attempt) => reconciler.reconcile(key, signal, attempt),
      watches: [
        watch(policies, { when: [specChanged] }),
        watch(namespaces, {
          keys: () => policies.list().filter(selectsNamespaces).map(keyOf),
          when: [({ before, after }) => isSelectionChange(before, after)],
        }),
        watch(namespaces, {
          keys: ({ metadata }) =>
            policies
              .list()
              .filter((policy) => lacksObjectIn(policy, metadata.name))
              .map(keyOf),
          when: [({ before }) => before === undefined],
        }),
      ],
      events: { sink: events, of: (key) => policies.get(key) },
    });
  }

  #certificateController(): Controller {
    const { cluster, caches, settings, events } = this.#options;
    const policies = caches.cache(CERTIFICATE_POLICIES, { namespace: settings.clusterName });
    const namespaces = caches.cache(NAMESPACES);
    const reader = this.#watched.reader((key) => this.#certificates.enqueue(key));
    const reconciler = new CertificateReconciler({
      cluster,
      policies,
      namespaces,
      reader,
      evaluations: this.#evaluations,
      ownerOf,
      wake: (key) => this.#certificates.enqueue(key),
      events,
    });
    return this.#controller('governance-certificates', {
      reconcile: (key, signal, attempt) => reconciler.reconcile(key, signal, attempt),
      watches: [
        watch(policies, { when: [specChanged] }),
        watch(namespaces, {
          keys: () => policies.list().map(keyOf),
          when: [({ before, after }) => isSelectionChange(before, after)],
        }),
      ],
      events: { sink: events, of: (key) => policies.get(key) },
    });
  }

  #controller(
    name: string,
    options: Pick<ConstructorParameters<typeof Controller>[0], 'reconcile' | 'watches' | 'events'>,
  ): Controller {
    const { events, log, metrics } = this.#options;
    return new Controller({
      name,
      concurrency: CONCURRENCY,
      events: { sink: events, of: (key) => this.#policies.get(key) },
      ...options,
      log,
      ...(metrics === undefined ? {} : { metrics }),
    });
  }

  /** Whether a Policy is in the namespace of the cluster. */
  #isCopied({ metadata }: Policy): boolean {
    return metadata.namespace === this.#options.settings.clusterName;
  }
}

const labelsChanged: Predicate = ({ before, after }) =>
  JSON.stringify(before?.metadata.labels) !== JSON.stringify(after?.metadata.labels);

/** What a Policy declares has changed, not only its status. */
const specChanged = anyOf(generationChanged, annotationsChanged, labelsChanged);

/** Whether the objects of a policy depend on which namespaces there are. */
function selectsNamespaces({ spec }: ConfigurationPolicy): boolean {
  return spec.namespaceSelector !== undefined;
}

/** Whether a noncompliant object is in the namespace, which may have been missing. */
function lacksObjectIn({ status }: ConfigurationPolicy, namespace = ''): boolean {
  return (status?.relatedObjects ?? []).some(
    ({ object, compliant }) => compliant === 'NonCompliant' && object?.metadata?.namespace === namespace,
  );
}

function rootKeys({ metadata }: Policy): readonly ObjectKey[] {
  const root = rootOf(metadata.name ?? '');
  return root === undefined ? [] : [root];
}

/** Whose policy it is: the namespace of the Policy whose template it is. Others, which administrators apply, are on their own. */
function ownerOf(policy: KubernetesObject): string {
  const [copy] = ownerKeys(policy);
  return rootOf(copy?.name ?? '')?.namespace ?? keyText(keyOf(policy));
}

function ownerKeys({ metadata }: KubernetesObject): readonly ObjectKey[] {
  const { namespace = '', ownerReferences = [] } = metadata;
  return ownerReferences.filter(({ kind }) => kind === POLICIES.kind).map(({ name }) => ({ namespace, name }));
}

/** `namespace/name` of the PolicySets that a Policy depends on. */
/** The objects that a copy depends on, as {@link objectKeyText} names them. */
function requirementsOf({ metadata, spec }: Policy, clusterName: string): readonly string[] {
  if (metadata.namespace !== clusterName) {
    return [];
  }
  const listed = [spec.dependencies, ...spec['policy-templates'].map(({ extraDependencies }) => extraDependencies)];
  return listed.flatMap((list) =>
    readDependencies(list).map((dependency) => objectId(requirementOf(dependency, clusterName))),
  );
}

function objectKeyText({ apiVersion, kind, metadata }: KubernetesObject): string {
  return objectId({ apiVersion, kind, namespace: metadata.namespace ?? '', name: metadata.name ?? '' });
}

/** The copy of a Policy, as {@link objectKeyText} names it. */
function copyKeyText(root: ObjectKey, clusterName: string): string {
  const { group, version, kind } = POLICIES;
  return objectId({ apiVersion: `${group}/${version}`, kind, namespace: clusterName, name: copyName(root) ?? '' });
}
