// Compares the matchConstraints of settings of builtin:cel with the rules of their policy. Where they never meet, the policy
// would admit everything.
import type { RequestConstraints } from '../../engine/index.ts';
import { type AdmissionPolicySpec, equivalentGroups } from '../../resources/index.ts';
import type { Findings } from './findings.ts';

type Rule = AdmissionPolicySpec['rules'][number];
type Constraint = RequestConstraints['resourceRules'][number];

const WILDCARD = '*';
/** Most comparisons for this warning: settings have no limit on their number, and tenants write them. */
const MAX_COMPARISONS = 1_000_000;

/** Warns when no request can match both the rules of the policy and the constraints of its settings. */
export function checkConstraints(
  settings: string,
  { matchPolicy, resourceRules }: RequestConstraints,
  spec: Pick<AdmissionPolicySpec, 'rules' | 'matchPolicy'>,
  findings: Findings,
): void {
  if (sizeOf(spec.rules) * sizeOf(resourceRules) > MAX_COMPARISONS) {
    return;
  }
  // With Equivalent, a request matches in each version and group that serves the resource.
  const isExact = matchPolicy === 'Exact' && spec.matchPolicy === 'Exact';
  const mayMeet = resourceRules.some((constraint) => spec.rules.some((rule) => meets(rule, constraint, isExact)));
  if (resourceRules.length > 0 && !mayMeet) {
    const text = 'no request matches both these rules and spec.rules: the policy admits everything';
    findings.warn('constraints-never-match', `${settings}.matchConstraints.resourceRules`, text);
  }
}

/** With that of the other side, an upper bound of the comparisons; an equivalent group doubles the groups. */
function sizeOf(rules: readonly (Rule | Constraint)[]): number {
  return rules.reduce(
    (sum, { apiGroups = [], apiVersions, operations, resources }) =>
      sum + apiVersions.length + operations.length + resources.length * (1 + 2 * apiGroups.length),
    0,
  );
}

function meets(rule: Rule, constraint: Constraint, isExact: boolean): boolean {
  const { apiGroups = [], scope = WILDCARD } = rule;
  const groupsOf = (resource: string): readonly string[] =>
    isExact ? apiGroups : apiGroups.flatMap((group) => equivalentGroups(group, resource.split('/', 1)[0] ?? ''));
  return (
    share(rule.operations, constraint.operations) &&
    (!isExact || share(rule.apiVersions, constraint.apiVersions)) &&
    rule.resources.some(
      (one) =>
        share(groupsOf(one), constraint.apiGroups) && constraint.resources.some((other) => sharesResource(one, other)),
    ) &&
    (scope === WILDCARD || constraint.scope === WILDCARD || scope === constraint.scope)
  );
}

function share(some: readonly string[], others: readonly string[]): boolean {
  return some.some((one) => one === WILDCARD || others.some((other) => other === WILDCARD || other === one));
}

/** Whether two entries of `resources` may name the same resource: for example `pods` and `pods/*`. */
function sharesResource(one: string, other: string): boolean {
  const [name = '', part] = one.split('/');
  const [otherName = '', otherPart] = other.split('/');
  const isSamePart = part === WILDCARD || otherPart === WILDCARD || part === otherPart;
  return isSamePart && (name === WILDCARD || otherName === WILDCARD || name === otherName);
}
