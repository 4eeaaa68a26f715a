// Which webhooks may receive requests of the product itself, derived from its access rules.
import { equivalentGroups, NAMESPACE_NAME_LABEL, splitResource } from '../../resources/index.ts';
import type { AccessRule, MatchRule } from '../../resources/index.ts';
import { CLUSTER_RULES, REVIEW_RULES } from '../access-rules/cluster-rules.ts';
import type { Webhook } from './webhook-object.ts';

/** Verbs that API servers send to no webhook. */
const READ_VERBS: ReadonlySet<string> = new Set(['get', 'list', 'watch']);

type Kinds = Pick<MatchRule, 'apiGroups' | 'resources'>;

/** Resources that the product writes in any namespace, or cluster-scoped. */
const WRITTEN = writtenKinds([...CLUSTER_RULES, ...REVIEW_RULES]);

/**
 * Whether a webhook may receive a request of the product: for a resource that the product writes outside its namespace, or
 * for anything inside it. Errs on the side of true: operations, versions, scopes, subresources and other labels of
 * namespaces are ignored.
 * @param furtherRules access rules of controllers that are not part of `CLUSTER_RULES`
 */
export function mayCoverProductRequests(
  { rules, namespaceSelector }: Pick<Webhook, 'rules' | 'namespaceSelector'>,
  productNamespace: string,
  furtherRules: readonly AccessRule[] = [],
): boolean {
  const { matchExpressions = [] } = namespaceSelector;
  const written = [...WRITTEN, ...writtenKinds(furtherRules)];
  return (
    rules.some((rule) => mayMatch(rule, written)) || !matchExpressions.some((one) => excludes(one, productNamespace))
  );
}

function writtenKinds(rules: readonly AccessRule[]): readonly Kinds[] {
  return rules.filter(({ verbs }) => verbs.some((verb) => !READ_VERBS.has(verb))).map((rule) => kindsOf(rule));
}

/** Drops subresources, and adds groups that serve the same objects. */
function kindsOf({ apiGroups, resources }: AccessRule): Kinds {
  const names = resources.map(resourceName);
  return {
    apiGroups: apiGroups.flatMap((group) => names.flatMap((name) => equivalentGroups(group, name))),
    resources: names,
  };
}

function mayMatch({ apiGroups, resources }: MatchRule, written: readonly Kinds[]): boolean {
  const names = resources.map(resourceName);
  return written.some((kinds) => overlaps(kinds.apiGroups, apiGroups) && overlaps(kinds.resources, names));
}

function resourceName(resource: string): string {
  const [name] = splitResource(resource);
  return name;
}

/** Whether lists share an entry; `*` matches everything. */
function overlaps(one: readonly string[], other: readonly string[]): boolean {
  return one.includes('*') || other.includes('*') || one.some((value) => other.includes(value));
}

type Expression = NonNullable<Webhook['namespaceSelector']['matchExpressions']>[number];

/** Whether a requirement excludes a namespace by its name. */
function excludes({ key, operator, values = [] }: Expression, namespace: string): boolean {
  const isNamed = values.includes(namespace);
  return key === NAMESPACE_NAME_LABEL && ((operator === 'NotIn' && isNamed) || (operator === 'In' && !isNamed));
}
