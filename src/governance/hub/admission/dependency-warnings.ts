// Warnings about the dependencies of a Policy or PolicySet that is applied.
import {
  GOVERNANCE_GROUP,
  GOVERNANCE_KINDS,
  groupVersionOf,
  isJsonObject,
  type JsonObject,
  keyOf,
  kubernetesKind,
  type ObjectKey,
  own,
  type Policy,
} from '../../../resources/index.ts';
import type { ObjectCache } from '../../../runtime/index.ts';
import { nearestKey, objectIn } from '../../../values/index.ts';
import {
  type Dependency,
  type DependencyFinding,
  isGovernancePolicyKind,
  readDependencies,
  type Requirement,
  requirementOf,
} from '../../dependencies/index.ts';
import type { DependencyGraphs } from '../../dependencies/dependency-graphs.ts';
import { rootOf } from '../../targets/policy-copy.ts';
import type { Targets } from '../../targets/targets.ts';
import { nearestPolicy } from './nearest-policy.ts';
import { listIn } from './policy-rules.ts';
import type { GovernanceWarning } from './write-findings.ts';

/** Maximum number of warnings: API servers truncate long lists of warnings. */
const MAX_FINDINGS = 10;

const POLICY_KINDS = [...GOVERNANCE_KINDS.map(({ kind }) => kind), 'OperatorPolicy'];

export interface DependencyWarningsOptions {
  readonly targets: Pick<Targets, 'of' | 'hasCopies'>;
  readonly policies: ObjectCache<Policy>;
  readonly graphs: DependencyGraphs;
}

/** A dependency and its field. */
interface Entry {
  readonly field: string;
  readonly dependency: Dependency;
}

/** Warnings about dependencies that cannot be met as they are written. */
export function entryWarnings(policy: JsonObject): readonly GovernanceWarning[] {
  const warnings: GovernanceWarning[] = [];
  for (const entry of entriesOf(policy)) {
    const problem = entryProblem(entry.dependency);
    if (problem !== undefined) {
      warnings.push({ code: 'dependency', field: `${entry.field}.${problem.field}`, text: problem.text });
    }
    if (warnings.length === MAX_FINDINGS) {
      break;
    }
  }
  return warnings;
}

/** Warnings about cycles, missing and contradictory dependencies. None before all Policies are known. */
export function graphWarnings(policy: Policy, options: DependencyWarningsOptions): readonly GovernanceWarning[] {
  const { graphs, targets } = options;
  if (!graphs.isSynced) {
    return [];
  }
  const { graph, isComplete } = graphs.around(policy);
  const entries = entriesOf(policy as unknown as JsonObject);
  return graph
    .findingsOf({ namespace: '', ...keyOf(policy) })
    .filter(({ type }) => isComplete || (type !== 'not-found' && type !== 'not-placed'))
    .filter(({ type }) => targets.of(policy).length > 0 || type !== 'not-placed')
    .slice(0, MAX_FINDINGS)
    .map((finding) => ({
      code: CODES[finding.type],
      field: fieldOf(finding, entries, graph.clusterNamespace),
      text: textOfFinding(finding, policy, options),
    }));
}

/** Warnings about cycles that a PolicySet would close: of the Policies that depend on it, each cycle once. */
export function setCycleWarnings(
  key: ObjectKey,
  members: readonly string[],
  { graphs }: Pick<DependencyWarningsOptions, 'graphs'>,
): readonly GovernanceWarning[] {
  const graph = graphs.isSynced ? graphs.aroundSet(key, members)?.graph : undefined;
  const reported = new Set<string>();
  const warnings: GovernanceWarning[] = [];
  for (const { namespace, name } of graph?.policies ?? []) {
    for (const finding of graph?.findingsOf({ namespace, name }) ?? []) {
      if (
        finding.type === 'cycle' &&
        warnings.length < MAX_FINDINGS &&
        !finding.path.some((one) => reported.has(one))
      ) {
        finding.path.forEach((one) => reported.add(one));
        warnings.push({ code: CODES.cycle, field: 'spec.policies', text: cycleText(finding.message) });
      }
    }
  }
  return warnings;
}

function cycleText(message: string): string {
  return `${message}: none of it is ever applied`;
}

const CODES = {
  cycle: 'dependency-cycle',
  'not-found': 'dependency-not-found',
  'not-placed': 'dependency-not-placed',
  invalid: 'dependency-conflict',
} as const;

function entriesOf(policy: JsonObject): readonly Entry[] {
  const spec = objectIn(policy, 'spec');
  const ofPolicy = entriesIn(own(spec, 'dependencies'), 'spec.dependencies');
  const ofTemplates = listIn(spec, 'policy-templates').flatMap((template, index) =>
    isJsonObject(template)
      ? entriesIn(own(template, 'extraDependencies'), `spec.policy-templates[${index}].extraDependencies`)
      : [],
  );
  return [...ofPolicy, ...ofTemplates];
}

function entriesIn(list: unknown, field: string): readonly Entry[] {
  return readDependencies(list).map((dependency, index) => ({ field: `${field}[${index}]`, dependency }));
}

interface EntryProblem {
  readonly field: keyof Dependency;
  readonly text: string;
}

function entryProblem(dependency: Dependency): EntryProblem | undefined {
  const { apiVersion, kind, name, namespace } = dependency;
  const { group } = groupVersionOf(apiVersion);
  if (!/^(?:[^/]+\/)?[^/]+$/.test(apiVersion)) {
    return { field: 'apiVersion', text: `expected GROUP/VERSION or VERSION, got ${JSON.stringify(apiVersion)}` };
  }
  if (kind === '' || name === '') {
    return { field: kind === '' ? 'kind' : 'name', text: 'expected a name, got none' };
  }
  if (group === GOVERNANCE_GROUP && !POLICY_KINDS.includes(kind)) {
    const nearest = nearestKey(kind, POLICY_KINDS);
    return {
      field: 'kind',
      text: `there is no kind ${JSON.stringify(kind)} in ${group}${nearest === undefined ? '' : `: did you mean ${nearest}?`}`,
    };
  }
  const isNamespaced = kubernetesKind(apiVersion, kind)?.namespaced === true;
  return isNamespaced && namespace === ''
    ? { field: 'namespace', text: `a ${kind} has a namespace: set it` }
    : undefined;
}

/** The field of a finding. */
function fieldOf(finding: DependencyFinding, entries: readonly Entry[], clusterNamespace: string): string {
  const dependency = 'dependency' in finding ? finding.dependency : undefined;
  const entry = entries.find((one) => dependency !== undefined && isOn(one.dependency, dependency, clusterNamespace));
  return entry === undefined ? 'spec' : `${entry.field}.name`;
}

/** Whether a dependency of the manifest became this requirement. False for members of PolicySets, which have no field of their own. */
function isOn(written: Dependency, requirement: Requirement, clusterNamespace: string): boolean {
  const { kind, name, namespace } = requirementOf(written, clusterNamespace);
  if (kind !== requirement.kind) {
    return false;
  }
  return isGovernancePolicyKind(requirement)
    ? requirement.name === name || requirement.name.endsWith(`.${name}`)
    : requirement.name === name && (requirement.namespace === namespace || namespace === '');
}

function textOfFinding(finding: DependencyFinding, policy: Policy, options: DependencyWarningsOptions): string {
  switch (finding.type) {
    case 'cycle':
      return cycleText(finding.message);
    case 'not-found': {
      const hint = isGovernancePolicyKind(finding.dependency)
        ? nameHint(finding.dependency, policy, options)
        : undefined;
      return `${finding.message} yet: it is waited for${hint === undefined ? '' : `; ${hint}`}`;
    }
    case 'not-placed':
    case 'invalid':
      return finding.message;
    default:
      return finding satisfies never;
  }
}

/** A hint for a name that does not exist. */
function nameHint({ name }: Requirement, policy: Policy, { policies }: DependencyWarningsOptions): string | undefined {
  const { namespace = '' } = policy.metadata;
  // A name with a dot is read as NAMESPACE.NAME.
  if (policies.get({ namespace, name }) !== undefined) {
    return `a name with a dot is read as NAMESPACE.NAME: set the namespace ${namespace} as well`;
  }
  const wanted = rootOf(name);
  // The author may have no right to list other namespaces.
  if (wanted === undefined || wanted.namespace !== namespace) {
    return undefined;
  }
  const nearest = nearestPolicy(policies, namespace, wanted.name);
  return nearest === undefined ? undefined : `did you mean ${nearest}?`;
}
