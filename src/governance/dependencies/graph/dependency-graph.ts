import type { ObjectKey } from '../../../resources/index.ts';
import { shortened } from '../../../values/index.ts';
import { DependencyError, isGovernancePolicyKind, objectId, type Requirement, requirementOf } from '../dependency.ts';
import { type DependencyLookup, unmetDependencies, type UnmetDependency } from '../unmet-dependencies.ts';
import { cycleThrough, deadlocks, type Goal } from './goals.ts';
import { type GraphPolicy, type GraphTemplate, policyText } from './graph-policy.ts';

/** Dependencies of all templates together: some 100 bytes each in memory. */
export const MAX_GRAPH_DEPENDENCIES = 500_000;

/** Length of a cycle in a status. Characters. */
const MAX_CYCLE_LENGTH = 500;

/** What is wrong with the dependencies of a policy. */
export type DependencyFinding =
  /** Templates that wait for each other without end. `path` names policies, or templates of one policy; both ends are equal. */
  | { readonly type: 'cycle'; readonly path: readonly string[]; readonly message: string }
  /** No policy of the cluster has the name, or contains the object. */
  | { readonly type: 'not-found'; readonly dependency: Requirement; readonly message: string }
  | { readonly type: 'not-placed'; readonly dependency: Requirement; readonly message: string }
  | { readonly type: 'invalid'; readonly message: string };

/** The part of the graph that a dependency leads to. */
export interface DependencyTarget {
  readonly policy: GraphPolicy;
  /** Undefined if the dependency is on the whole policy. */
  readonly template: GraphTemplate | undefined;
}

/** A template, and its policy. */
interface Owned {
  readonly policy: GraphPolicy;
  readonly template: GraphTemplate;
}

/**
 * The dependencies between all policies of a cluster. A template waits for policies and for templates of policies; a
 * policy is compliant when all of its templates are, and not compliant when one of them is not.
 */
export class DependencyGraph {
  readonly policies: readonly GraphPolicy[];
  readonly clusterNamespace: string;
  readonly #templates: readonly Owned[];
  readonly #indexes: ReadonlyMap<GraphTemplate, number>;
  /** By canonical name. */
  readonly #policies: ReadonlyMap<string, number>;
  /** By {@link objectId} of their object. */
  readonly #templateIndexes: ReadonlyMap<string, number>;
  readonly #goals: readonly Goal[];
  /** The deadlock that a goal is part of. */
  readonly #deadlocks: ReadonlyMap<number, ReadonlySet<number>>;

  /** @throws DependencyError when the graph is too large */
  constructor(policies: readonly GraphPolicy[], clusterNamespace: string) {
    this.policies = policies;
    this.clusterNamespace = clusterNamespace;
    this.#templates = policies.flatMap((policy) => policy.templates.map((template) => ({ policy, template })));
    checkSize(this.#templates);
    this.#indexes = new Map(this.#templates.map(({ template }, index) => [template, index]));
    this.#policies = new Map(policies.map(({ namespace, name }, index) => [`${namespace}.${name}`, index]));
    this.#templateIndexes = this.#indexTemplates();
    this.#goals = this.#allGoals();
    this.#deadlocks = new Map(
      deadlocks(this.#goals).flatMap((group) => {
        const members = new Set(group);
        return group.map((goal) => [goal, members] as const);
      }),
    );
  }

  policy({ namespace, name }: Required<ObjectKey>): GraphPolicy | undefined {
    return this.policies[this.#policies.get(`${namespace}.${name}`) ?? -1];
  }

  /** The policy or template that a dependency is on; undefined for other objects. */
  targetOf(requirement: Requirement): DependencyTarget | undefined {
    if (isGovernancePolicyKind(requirement)) {
      const policy = this.policies[this.#policies.get(requirement.name) ?? -1];
      return policy && { policy, template: undefined };
    }
    return this.#templates[this.#templateIndexes.get(objectId(requirement)) ?? -1];
  }

  /** Whether a template and the object of its dependency wait for each other without end. */
  isDeadlocked(template: GraphTemplate, requirement: Requirement): boolean {
    const goal = this.#goalOf(requirement);
    return goal !== undefined && this.#deadlockOf(template)?.has(goal) === true;
  }

  /** The unmet dependencies of a template. */
  unmetOf(template: GraphTemplate, lookup: DependencyLookup): readonly UnmetDependency[] {
    const unmet = unmetDependencies(template.requirements, this.#withPlacement(lookup), (requirement) =>
      this.isDeadlocked(template, requirement),
    );
    return unmet.map((one) => (one.reason === 'Cycle' ? { ...one, detail: this.#cycleText(template) } : one));
  }

  #cycleText(template: GraphTemplate): string {
    return shortened(this.cycleOf(template)?.join(' → ') ?? '', MAX_CYCLE_LENGTH);
  }

  /** The cycle that a template is part of. */
  cycleOf(template: GraphTemplate): readonly string[] | undefined {
    const group = this.#deadlockOf(template);
    return group && this.#pathText(cycleThrough(this.#indexOf(template), group, this.#goals));
  }

  /** What is wrong with the dependencies of a policy, each finding once. */
  findingsOf(key: Required<ObjectKey>): readonly DependencyFinding[] {
    const policy = this.policy(key);
    const findings = (policy?.templates ?? []).flatMap((template) => [
      ...this.#cycleFinding(template),
      ...template.requirements.flatMap((requirement) => this.#missing(requirement)),
    ]);
    const invalid = (policy?.problems ?? []).map((message) => ({ type: 'invalid', message }) as const);
    return [...new Map([...invalid, ...findings].map((finding) => [finding.message, finding])).values()];
  }

  #indexOf(template: GraphTemplate): number {
    return this.#indexes.get(template) ?? -1;
  }

  #deadlockOf(template: GraphTemplate): ReadonlySet<number> | undefined {
    return this.#deadlocks.get(this.#indexOf(template));
  }

  #cycleFinding(template: GraphTemplate): readonly DependencyFinding[] {
    const path = this.cycleOf(template);
    if (path === undefined) {
      return [];
    }
    const message =
      path.length === 2
        ? `policy ${path[0] ?? ''} depends on itself`
        : `dependencies form a cycle: ${path.join(' → ')}`;
    return [{ type: 'cycle', path, message }];
  }

  /** Dependencies on policies, and on objects that policies contain, which this cluster does not have. */
  #missing(dependency: Requirement): readonly DependencyFinding[] {
    const target = this.targetOf(dependency);
    const text = `${dependency.kind} ${dependency.name}`;
    if (target !== undefined) {
      const message = `${text} is not placed on this cluster`;
      return target.policy.isPlaced ? [] : [{ type: 'not-placed', dependency, message }];
    }
    if (isGovernancePolicyKind(dependency) || dependency.kind === 'PolicySet') {
      return [{ type: 'not-found', dependency, message: `${text} does not exist` }];
    }
    // Other kinds of policies are in the cluster namespace, into which templates are applied.
    const isTemplate = requirementOf({ ...dependency, namespace: '' }, this.clusterNamespace).namespace !== '';
    return isTemplate ? [{ type: 'not-found', dependency, message: `no policy of this cluster contains ${text}` }] : [];
  }

  /** A policy that exists, but not here, is told apart from one that does not exist. */
  #withPlacement(lookup: DependencyLookup): DependencyLookup {
    return (requirement) => {
      const found = lookup(requirement);
      const isElsewhere = found.type === 'not-found' && this.targetOf(requirement)?.policy.isPlaced === false;
      return isElsewhere ? { type: 'not-placed' } : found;
    };
  }

  #indexTemplates(): ReadonlyMap<string, number> {
    const { clusterNamespace } = this;
    // Templates are applied to the namespace of the cluster, or have none: the graph does not know the scope of their kinds.
    return new Map(
      this.#templates.flatMap(({ template: { apiVersion, kind, name } }, index) =>
        ['', clusterNamespace].map((namespace) => [
          objectId(requirementOf({ apiVersion, kind, name, namespace, compliance: '' }, clusterNamespace)),
          index,
        ]),
      ),
    );
  }

  /**
   * Goals by number: first "applied" of each template, then "Compliant" of each policy, then "NonCompliant" of each. A
   * template that ignores its pending dependencies does not keep its policy from being compliant.
   */
  #allGoals(): readonly Goal[] {
    const applied = this.#templates.map(({ template }) => ({
      needs: template.requirements.map((requirement) => this.#goalOf(requirement)).filter((goal) => goal !== undefined),
      any: false,
    }));
    const goalsOf = (templates: readonly GraphTemplate[]): readonly number[] =>
      templates.map((template) => this.#indexOf(template));
    const compliant = this.policies.map(({ templates }) => ({
      needs: goalsOf(templates.filter(({ ignorePending }) => !ignorePending)),
      any: false,
    }));
    const nonCompliant = this.policies.map(({ templates }) => ({ needs: goalsOf(templates), any: true }));
    return [...applied, ...compliant, ...nonCompliant];
  }

  /** The goal that a dependency waits for; undefined if it waits for nothing in the graph. */
  #goalOf(requirement: Requirement): number | undefined {
    const { compliance, name } = requirement;
    if (compliance !== 'Compliant' && compliance !== 'NonCompliant') {
      return undefined;
    }
    if (!isGovernancePolicyKind(requirement)) {
      return this.#templateIndexes.get(objectId(requirement));
    }
    const policy = this.#policies.get(name);
    const first = this.#templates.length + (compliance === 'Compliant' ? 0 : this.policies.length);
    return policy === undefined ? undefined : first + policy;
  }

  /** The names of the policies on a way; those of the templates, if all are of one policy and differ. */
  #pathText(goals: readonly number[]): readonly string[] {
    const policies = goals.map((goal) => policyText(this.#policyOf(goal)));
    if (new Set(policies).size > 1) {
      const changes = policies.filter((name, index) => index === 0 || name !== policies[index - 1]);
      return changes.at(-1) === changes[0] ? changes : [...changes, changes[0] ?? ''];
    }
    const templates = goals.flatMap((goal) => {
      const { kind, name } = this.#templates[goal]?.template ?? {};
      return name === undefined ? [] : [`${policies[0] ?? ''} (${kind ?? ''} ${name})`];
    });
    return new Set(templates).size > 1 ? templates : [policies[0] ?? '', policies[0] ?? ''];
  }

  #policyOf(goal: number): GraphPolicy {
    const { length } = this.#templates;
    const policy = this.#templates[goal]?.policy ?? this.policies[(goal - length) % this.policies.length];
    return policy ?? { namespace: '', name: '', isPlaced: false, templates: [], problems: [] };
  }
}

function checkSize(templates: readonly Owned[]): void {
  const count = templates.reduce((sum, { template }) => sum + template.requirements.length, 0);
  if (count > MAX_GRAPH_DEPENDENCIES) {
    throw new DependencyError(
      'graph-too-large',
      `expected at most ${MAX_GRAPH_DEPENDENCIES} dependencies of all templates, got ${count}: depend on fewer objects`,
    );
  }
}
