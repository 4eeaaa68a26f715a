// Which webhooks may be asked about requests of the product itself, by what its code says that it may write.
import { equivalentGroups, NAMESPACE_NAME_LABEL, splitResource } from '../../resources/index.ts';
import type { AccessRule, MatchRule } from '../../resources/index.ts';
import { CLUSTER_RULES, REVIEW_RULES } from '../cluster-rules.ts';
import type { Webhook } from './webhook-object.ts';

/** Verbs of requests that no webhook is asked about. */
const READING: ReadonlySet<string> = new Set(['get', 'list', 'watch']);

type Kinds = Pick<MatchRule, 'apiGroups' | 'resources'>;

/** What the product writes in all namespaces, and in none. */
const WRITTEN: readonly Kinds[] = [...CLUSTER_RULES, ...REVIEW_RULES]
  .filter(({ verbs }) => verbs.some((verb) => !READING.has(verb)))
  .map((rule) => kindsOf(rule));

/**
 * Whether API servers may ask a webhook about a request of the product. In its own namespace it writes whatever it needs; elsewhere
 * only what it has rights for in the whole cluster. In doubt they may: operations, versions, scopes, subresources and other
 * labels of namespaces are not looked at.
 */
export function mayBeAskedAboutProduct(
  { rules, namespaceSelector }: Pick<Webhook, 'rules' | 'namespaceSelector'>,
  productNamespace: string,
): boolean {
  const { matchExpressions = [] } = namespaceSelector;
  return rules.some(mayBeForWritten) || !matchExpressions.some((one) => leavesOut(one, productNamespace));
}

/** Resources without their subresources; and groups with those that serve the same objects. */
function kindsOf({ apiGroups, resources }: AccessRule): Kinds {
  const names = resources.map(resourceName);
  return {
    apiGroups: apiGroups.flatMap((group) => names.flatMap((name) => equivalentGroups(group, name))),
    resources: names,
  };
}

function mayBeForWritten({ apiGroups, resources }: MatchRule): boolean {
  const names = resources.map(resourceName);
  return WRITTEN.some((written) => meets(written.apiGroups, apiGroups) && meets(written.resources, names));
}

function resourceName(resource: string): string {
  const [name] = splitResource(resource);
  return name;
}

/** Whether lists have something in common; a star stands for everything. */
function meets(one: readonly string[], other: readonly string[]): boolean {
  return one.includes('*') || other.includes('*') || one.some((value) => other.includes(value));
}

type Expression = NonNullable<Webhook['namespaceSelector']['matchExpressions']>[number];

/** Whether a requirement says by its name that a namespace is not meant. */
function leavesOut({ key, operator, values = [] }: Expression, namespace: string): boolean {
  const isNamed = values.includes(namespace);
  return key === NAMESPACE_NAME_LABEL && ((operator === 'NotIn' && isNamed) || (operator === 'In' && !isNamed));
}
