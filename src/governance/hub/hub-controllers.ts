// The controllers of the hub: they copy Policies to the namespaces of clusters, and summarise what the copies report.
import {
  keyOf,
  keyText,
  type ObjectKey,
  POLICIES,
  POLICY_SETS,
  type Policy,
  type PolicyRevision,
  type PolicySet,
} from '../../resources/index.ts';
import {
  type Controller,
  generationChanged,
  type ObjectCache,
  type ObjectIndex,
  type Runnable,
  watch,
} from '../../runtime/index.ts';
import { GovernanceReviews } from './admission/governance-reviews.ts';
import { countCopies } from './copy-counts.ts';
import { ControllerSet } from '../parts/controller-set.ts';
import { DependencyGraphs, policySetKeys } from '../dependencies/dependency-graphs.ts';
import { type GovernanceParts, specChanged } from '../parts/governance-parts.ts';
import { type GovernedNamespaces, isGoverned } from '../settings/governance-settings.ts';
import { MissingKinds } from '../objects/missing-kinds.ts';
import { ClusterNamespaces } from './propagation/cluster-namespaces.ts';
import { CopyPlans } from './propagation/copy-plans.ts';
import { CopyReconciler } from './propagation/copy-reconciler.ts';
import { CopyRecords } from './propagation/copy-records.ts';
import { HubTemplates } from './propagation/hub-templates.ts';
import { PolicySetReconciler } from './propagation/policy-set-reconciler.ts';
import { RootReconciler } from './propagation/root-reconciler.ts';
import { PolicyRevisions } from './revisions/policy-revisions.ts';
import { DECLARED_POLICIES } from './revisions/served-policies.ts';
import { copyName, rootOf } from '../targets/policy-copy.ts';
import type { Targets } from '../targets/targets.ts';

export interface HubOptions {
  readonly parts: GovernanceParts;
  readonly targets: Targets;
  readonly governed: GovernedNamespaces;
  /** The namespace of policies on each cluster, for the names of dependencies in warnings. */
  readonly clusterNamespace: string;
  /** Default: no revisions are kept, and what is declared is applied. */
  readonly revisions?: KeptRevisions | undefined;
  /** Whether writes are not checked. Default: they are. */
  readonly isSilent?: () => boolean;
}

/** Where revisions of Policies are kept. */
export interface KeptRevisions {
  readonly revisions: ObjectCache<PolicyRevision>;
  /** The namespace of the product. */
  readonly namespace: string;
}

/** The controllers of Policies, which are no copies, of PolicySets, and of the copies' specs. They apply nothing. */
export class HubControllers implements Runnable {
  readonly name = 'governance hub';
  readonly ready: Promise<void>;
  /** The rules for writes of governance kinds; they use caches only. */
  readonly reviews: GovernanceReviews;
  /** The dependencies of all roots. */
  readonly graphs: DependencyGraphs;
  readonly #options: HubOptions;
  readonly #policies: ObjectCache<Policy>;
  readonly #policySets: ObjectCache<PolicySet>;
  /** Roots by the PolicySets that they depend on, and copies by their roots. */
  readonly #bySet: ObjectIndex<Policy>;
  readonly #byRoot: ObjectIndex<Policy>;
  readonly #missing = new MissingKinds();
  readonly #copies: Controller;
  readonly #roots: Controller;
  readonly #revisions: PolicyRevisions | undefined;
  readonly #set: ControllerSet;

  constructor(options: HubOptions) {
    this.#options = options;
    const { parts, targets, governed, clusterNamespace, isSilent = () => false } = options;
    const policies = (this.#policies = parts.caches.cache(POLICIES));
    this.#policySets = parts.caches.cache(POLICY_SETS);
    this.#bySet = policies.index((policy) => (this.#isCopy(policy) ? [] : policySetKeys(policy)));
    this.#byRoot = policies.index((policy) => this.#rootKeys(policy).map(keyText));
    this.graphs = new DependencyGraphs({
      policies,
      policySets: this.#policySets,
      clusterNamespace,
      rootIn: (policy) => (this.#isCopy(policy) ? undefined : policy),
      isPlaced: (root) => targets.of(root).length > 0 && isGoverned(root.metadata.namespace ?? '', governed),
    });
    targets.subscribe(() => this.graphs.reset());
    this.reviews = new GovernanceReviews({ targets, governed, policies, graphs: this.graphs, isSilent });
    parts.counts.add(() => [...policies.list().filter((policy) => !this.#isCopy(policy)), ...this.#policySets.list()]);
    countCopies(parts.registry, () => policies.list().filter((policy) => this.#isCopy(policy)));
    const records = new CopyRecords((root) => this.#roots.enqueue(root));
    const plans = new CopyPlans({ governed, targets, policySets: this.#policySets });
    this.#revisions = this.#policyRevisions();
    this.#copies = this.#copyController(plans, records);
    this.#roots = this.#rootController(plans, records);
    const controllers = [this.#copies, this.#roots, this.#policySetController(), ...this.#revisionController()];
    this.#set = new ControllerSet(this.name, controllers, () => [
      this.#missing.follow(parts.definitions, (key) => this.#copies.enqueue(key)),
      targets.subscribe((root) => this.#targetsChanged(root)),
    ]);
    this.ready = this.#set.ready;
  }

  get isIdle(): boolean {
    return this.#set.isIdle;
  }

  async start(signal: AbortSignal): Promise<void> {
    await this.#set.start(signal);
  }

  #targetsChanged(key: ObjectKey): void {
    const root = this.#policies.get(key);
    for (const copy of root === undefined ? [] : this.#copyKeys(root)) {
      this.#copies.enqueue(copy);
    }
    this.#roots.enqueue(key);
  }

  /** Writes and deletes copies. A change of one copy is work for that copy only. */
  #copyController(plans: CopyPlans, records: CopyRecords): Controller {
    const { parts, targets } = this.#options;
    const { cluster, namespaces, events } = parts;
    const policies = this.#policies;
    const reconciler = new CopyReconciler({
      cluster,
      targets,
      plans,
      served: this.#revisions ?? DECLARED_POLICIES,
      policies,
      namespaces: new ClusterNamespaces(cluster, namespaces),
      hubTemplates: new HubTemplates({
        mappings: parts.mappings,
        reader: parts.watched.reader((key) => this.#copies.enqueue(key)),
        missing: this.#missing,
        evaluations: parts.evaluations,
        wake: (key) => this.#copies.enqueue(key),
      }),
      records,
      events,
    });
    const rootOfCopy = ({ name }: ObjectKey): Policy | undefined => {
      const root = rootOf(name);
      return root && policies.get(root);
    };
    return parts.controller('governance-copies', rootOfCopy, {
      reconcile: (key, signal, attempt) => reconciler.reconcile(key, signal, attempt),
      // Tenants take turns, not clusters.
      ownerOf: ({ name }) => rootOf(name)?.namespace,
      watches: [
        watch(policies, {
          keys: (policy) => (this.#isCopy(policy) ? [keyOf(policy)] : this.#copyKeys(policy)),
          when: [specChanged],
        }),
        watch(this.#policySets, {
          keys: (set) => this.#bySet.get(keyText(keyOf(set))).flatMap((root) => this.#copyKeys(root)),
          when: [generationChanged],
        }),
        watch(namespaces, { keys: ({ metadata }) => this.#copyKeysIn(metadata.name ?? ''), when: [specChanged] }),
      ],
    });
  }

  /** Writes the statuses of roots. */
  #rootController(plans: CopyPlans, records: CopyRecords): Controller {
    const { parts, targets } = this.#options;
    const policies = this.#policies;
    const reconciler = new RootReconciler({
      cluster: parts.cluster,
      targets,
      plans,
      policies,
      copiesOf: (root) => this.#byRoot.get(keyText(root)),
      records,
      revisions: this.#revisions,
    });
    return parts.controller('governance-policies', (key) => policies.get(key), {
      reconcile: (key, signal) => reconciler.reconcile(key, signal),
      watches: [
        watch(policies, { keys: (policy) => (this.#isCopy(policy) ? [] : [keyOf(policy)]), when: [specChanged] }),
        watch(policies, { keys: (policy) => this.#rootKeys(policy) }),
      ],
    });
  }

  #policyRevisions(): PolicyRevisions | undefined {
    const { parts, targets, governed, revisions: kept } = this.#options;
    return (
      kept &&
      new PolicyRevisions({
        ...kept,
        cluster: parts.cluster,
        policies: this.#policies,
        events: parts.events,
        isGoverned: (namespace) => isGoverned(namespace, governed),
        checks: { targets, policies: this.#policies, graphs: this.graphs },
        changed: (root) => this.#targetsChanged(root),
      })
    );
  }

  /** Makes revisions of Policies, and decides which one is applied. */
  #revisionController(): readonly Controller[] {
    const { parts, revisions: kept } = this.#options;
    const [policies, revisions] = [this.#policies, this.#revisions];
    if (kept === undefined || revisions === undefined) {
      return [];
    }
    return [
      parts.controller('governance-revisions', (key) => policies.get(key), {
        reconcile: (key, signal, attempt) => revisions.reconcile(key, signal, attempt),
        watches: [
          watch(policies, { keys: (policy) => (this.#isCopy(policy) ? [] : [keyOf(policy)]), when: [specChanged] }),
          // Also of Policies that are gone.
          watch(kept.revisions, { keys: ({ spec }) => rootsOfRevision(spec.policy) }),
        ],
      }),
    ];
  }

  #policySetController(): Controller {
    const { cluster, events } = this.#options.parts;
    const policies = this.#policies;
    const policySets = this.#policySets;
    const byMember = policySets.index(({ metadata, spec }) =>
      spec.policies.map((name) => `${metadata.namespace ?? ''}/${name}`),
    );
    const reconciler = new PolicySetReconciler({ cluster, policies, policySets, events });
    return this.#options.parts.controller('governance-policy-sets', (key) => policySets.get(key), {
      reconcile: (key, signal) => reconciler.reconcile(key, signal),
      watches: [
        watch(policySets, { when: [generationChanged] }),
        watch(policies, {
          keys: ({ metadata }) => byMember.get(`${metadata.namespace ?? ''}/${metadata.name ?? ''}`).map(keyOf),
        }),
      ],
    });
  }

  /** Whether a Policy is in the namespace of a cluster. */
  #isCopy({ metadata }: Policy): boolean {
    return this.#options.targets.hasCopies(metadata.namespace ?? '');
  }

  #rootKeys(policy: Policy): readonly ObjectKey[] {
    const root = this.#isCopy(policy) ? rootOf(policy.metadata.name ?? '') : undefined;
    return root === undefined ? [] : [root];
  }

  /** The copies that a root has, or should have. */
  #copyKeys(root: Policy): readonly ObjectKey[] {
    const key = keyOf(root);
    const name = copyName(key);
    const wanted = this.#options.targets.of(root).map(({ namespace }) => namespace);
    const stored = this.#byRoot.get(keyText(key)).map(({ metadata }) => metadata.namespace ?? '');
    return name === undefined ? [] : [...new Set([...wanted, ...stored])].map((namespace) => ({ namespace, name }));
  }

  /** The copies that should be in the namespace of a cluster. */
  #copyKeysIn(namespace: string): readonly ObjectKey[] {
    const { targets } = this.#options;
    const roots = targets.hasCopies(namespace) ? this.#policies.list().filter((policy) => !this.#isCopy(policy)) : [];
    return roots
      .filter((root) => targets.of(root).some((target) => target.namespace === namespace))
      .flatMap((root) => {
        const name = copyName(keyOf(root));
        return name === undefined ? [] : { namespace, name };
      });
  }
}

/** The Policy of a revision, which somebody else may have written. */
function rootsOfRevision({ kind, namespace, name }: PolicyRevision['spec']['policy']): readonly ObjectKey[] {
  return kind === POLICIES.kind && namespace !== undefined ? [{ namespace, name }] : [];
}
