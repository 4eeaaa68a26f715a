// The controllers of a member cluster: they apply the templates of its copies of Policies, and report on the copies.
import {
  CERTIFICATE_POLICIES,
  CONFIGURATION_POLICIES,
  type ConfigurationPolicy,
  keyOf,
  keyText,
  type KubernetesObject,
  type ObjectKey,
  POLICIES,
  type Policy,
} from '../../resources/index.ts';
import { type Controller, LOW_PRIORITY, type ObjectCache, type Runnable, watch } from '../../runtime/index.ts';
import { CertificateReconciler, isSelectionChange } from './enforcement/certificate-reconciler.ts';
import { ControllerSet } from '../parts/controller-set.ts';
import { objectId, readDependencies, requirementOf } from '../dependencies/index.ts';
import { DependencyGraphs } from '../dependencies/dependency-graphs.ts';
import { ConfigurationReconciler } from './enforcement/configuration-reconciler.ts';
import { type GovernanceParts, specChanged } from '../parts/governance-parts.ts';
import { MissingKinds } from '../objects/missing-kinds.ts';
import { copyName, rootOf } from '../targets/policy-copy.ts';
import { DependencyObjects } from './template-sync/dependency-objects.ts';
import { TemplateKinds } from './template-sync/template-kinds.ts';
import { TemplatePlans } from './template-sync/template-plans.ts';
import { TemplateSyncReconciler } from './template-sync/template-sync-reconciler.ts';

/** The definitions with which ConfigurationPolicies are deleted. */
const OWN_DEFINITIONS = [POLICIES, CONFIGURATION_POLICIES].map(({ group, resource }) => `${resource}.${group}`);

export interface MemberOptions {
  readonly parts: GovernanceParts;
  /** The namespace of the copies and their templates. */
  readonly namespace: string;
  /** Set if the cluster has the roots as well. Default: it knows its copies only. */
  readonly hub?: {
    /** The Policies of all namespaces. A verdict about a copy counts once it has the spec of its root. */
    readonly policies: ObjectCache<Policy>;
    readonly graphs: DependencyGraphs;
  };
  /** Whether differences in statuses are complete, for dry runs. Default: their first lines. */
  readonly fullDiffs?: boolean;
}

/** The controllers of copies and of the kinds of their templates. They write no root. */
export class MemberControllers implements Runnable {
  readonly name = 'governance member';
  readonly ready: Promise<void>;
  readonly #options: MemberOptions;
  readonly #policies: ObjectCache<Policy>;
  readonly #graphs: DependencyGraphs;
  readonly #own: readonly ObjectCache[];
  /** Kinds that templates and dependencies miss, and ConfigurationPolicies. */
  readonly #missing = { sync: new MissingKinds(), configuration: new MissingKinds() };
  readonly #sync: Controller;
  readonly #configuration: Controller;
  readonly #certificates: Controller;
  readonly #set: ControllerSet;

  constructor(options: MemberOptions) {
    this.#options = options;
    const { parts, namespace, hub } = options;
    this.#policies = hub?.policies ?? parts.caches.cache(POLICIES, { namespace });
    this.#graphs = hub?.graphs ?? graphsOfCopies(this.#policies, namespace);
    this.#own = [CONFIGURATION_POLICIES, CERTIFICATE_POLICIES].map((kind) =>
      parts.caches.cache<KubernetesObject>(kind, { namespace }),
    );
    parts.counts.add(() => this.#own.flatMap((cache) => cache.list()));
    this.#sync = this.#syncController();
    this.#configuration = this.#configurationController();
    this.#certificates = this.#certificateController();
    this.#set = new ControllerSet(this.name, [this.#sync, this.#configuration, this.#certificates], () => [
      this.#missing.sync.follow(parts.definitions, (key) => this.#sync.enqueue(key)),
      this.#missing.configuration.follow(parts.definitions, (key) => this.#configuration.enqueue(key)),
      this.#graphs.subscribe(() => this.#graphChanged()),
      parts.evaluations.readyFor(this.#own),
    ]);
    this.ready = this.#set.ready;
  }

  get isIdle(): boolean {
    return this.#set.isIdle;
  }

  async start(signal: AbortSignal): Promise<void> {
    await this.#set.start(signal);
  }

  /** Findings about dependencies can change with any Policy. */
  #graphChanged(): void {
    const { namespace } = this.#options;
    for (const copy of this.#policies.list(namespace)) {
      if (requirementsOf(copy, namespace).length > 0) {
        this.#sync.enqueue(keyOf(copy), { priority: LOW_PRIORITY });
      }
    }
  }

  #syncController(): Controller {
    const { parts, namespace } = this.#options;
    const { cluster, governed, mappings, events } = parts;
    const policies = this.#policies;
    const reader = parts.watched.reader((key) => this.#sync.enqueue(key));
    const kinds = new TemplateKinds({ cluster, governed, mappings, reader, own: this.#own });
    const own = [policies as unknown as ObjectCache, ...this.#own];
    const dependents = policies.index((copy) => requirementsOf(copy, namespace));
    const plans = new TemplatePlans({
      namespace,
      kinds,
      dependencies: new DependencyObjects({ mappings, reader, policies, own }),
      reader,
      missing: this.#missing.sync,
      graph: () => this.#graphs.current(),
    });
    const reconciler = new TemplateSyncReconciler({ cluster, policies, plans, kinds, graphs: this.#graphs, events });
    const dependentsOf = (object: KubernetesObject): readonly ObjectKey[] =>
      dependents.get(objectKeyText(object)).map(keyOf);
    const templates = this.#own.map((cache) =>
      watch(cache, { keys: (object) => [...ownerKeys(object), ...dependentsOf(object)] }),
    );
    const isCopy = ({ metadata }: Policy): boolean => metadata.namespace === namespace;
    return parts.controller('governance-templates', (key) => policies.get(key), {
      reconcile: (key, signal, attempt) => reconciler.reconcile(key, signal, attempt),
      watches: [
        watch(policies, { keys: (policy) => (isCopy(policy) ? [keyOf(policy)] : []), when: [specChanged] }),
        // A dependency is on a copy, and its verdict counts once the copy has the spec of its root.
        watch(policies, {
          keys: (policy) =>
            isCopy(policy) ? dependentsOf(policy) : dependents.get(copyKeyText(keyOf(policy), namespace)).map(keyOf),
        }),
        ...templates,
      ],
    });
  }

  #configurationController(): Controller {
    const { parts, namespace } = this.#options;
    const { cluster, governed, caches, namespaces, definitions, mappings, watched, evaluations, events, log } = parts;
    const policies = caches.cache(CONFIGURATION_POLICIES, { namespace });
    const reconciler = new ConfigurationReconciler({
      cluster,
      governed,
      policies,
      mappings,
      reader: watched.reader((key) => this.#configuration.enqueue(key)),
      missing: this.#missing.configuration,
      namespaces,
      evaluations,
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
    return this.#options.parts.controller('governance-configuration', (key) => policies.get(key), {
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
    });
  }

  #certificateController(): Controller {
    const { cluster, caches, namespaces, watched, evaluations, events } = this.#options.parts;
    const policies = caches.cache(CERTIFICATE_POLICIES, { namespace: this.#options.namespace });
    const reader = watched.reader((key) => this.#certificates.enqueue(key));
    const reconciler = new CertificateReconciler({
      cluster,
      policies,
      namespaces,
      reader,
      evaluations,
      ownerOf,
      wake: (key) => this.#certificates.enqueue(key),
      events,
    });
    return this.#options.parts.controller('governance-certificates', (key) => policies.get(key), {
      reconcile: (key, signal, attempt) => reconciler.reconcile(key, signal, attempt),
      watches: [
        watch(policies, { when: [specChanged] }),
        watch(namespaces, {
          keys: () => policies.list().map(keyOf),
          when: [({ before, after }) => isSelectionChange(before, after)],
        }),
      ],
    });
  }
}

/** The dependencies of the copies of a cluster, each in place of its root. */
function graphsOfCopies(policies: ObjectCache<Policy>, namespace: string): DependencyGraphs {
  return new DependencyGraphs({
    policies,
    clusterNamespace: namespace,
    rootIn: (copy) => {
      const root = rootOf(copy.metadata.name ?? '');
      return root && { ...copy, metadata: { ...copy.metadata, ...root } };
    },
    isPlaced: () => true,
  });
}

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

/** Whose policy it is: the namespace of the Policy whose template it is. Others, which administrators apply, are on their own. */
function ownerOf(policy: KubernetesObject): string {
  const [copy] = ownerKeys(policy);
  return rootOf(copy?.name ?? '')?.namespace ?? keyText(keyOf(policy));
}

function ownerKeys({ metadata }: KubernetesObject): readonly ObjectKey[] {
  const { namespace = '', ownerReferences = [] } = metadata;
  return ownerReferences.filter(({ kind }) => kind === POLICIES.kind).map(({ name }) => ({ namespace, name }));
}

/** The objects that a copy depends on, as {@link objectKeyText} names them. */
function requirementsOf({ metadata, spec }: Policy, namespace: string): readonly string[] {
  if (metadata.namespace !== namespace) {
    return [];
  }
  const listed = [spec.dependencies, ...spec['policy-templates'].map(({ extraDependencies }) => extraDependencies)];
  return listed.flatMap((list) =>
    readDependencies(list).map((dependency) => objectId(requirementOf(dependency, namespace))),
  );
}

function objectKeyText({ apiVersion, kind, metadata }: KubernetesObject): string {
  return objectId({ apiVersion, kind, namespace: metadata.namespace ?? '', name: metadata.name ?? '' });
}

/** The copy of a Policy, as {@link objectKeyText} names it. */
function copyKeyText(root: ObjectKey, namespace: string): string {
  const { group, version, kind } = POLICIES;
  return objectId({ apiVersion: `${group}/${version}`, kind, namespace: namespace, name: copyName(root) ?? '' });
}
