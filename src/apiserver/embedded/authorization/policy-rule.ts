import { quote } from '../../../go/index.ts';
import { isJsonObject, textsOf } from '../../../resources/index.ts';
import type { JsonObject, KubernetesObject } from '../../../resources/index.ts';
import type { AccessAttributes } from '../request/request.ts';

/** A PolicyRule of `rbac.authorization.k8s.io/v1`. Absent lists are empty. */
export interface PolicyRule {
  readonly verbs: readonly string[];
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames: readonly string[];
  readonly nonResourceURLs: readonly string[];
}

/** The rules that a Role or ClusterRole contains. */
export function rulesOf(role: KubernetesObject): readonly PolicyRule[] {
  const { rules } = role;
  return Array.isArray(rules) ? rules.filter(isJsonObject).map(readRule) : [];
}

function readRule({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: JsonObject): PolicyRule {
  return {
    verbs: textsOf(verbs),
    apiGroups: textsOf(apiGroups),
    resources: textsOf(resources),
    resourceNames: textsOf(resourceNames),
    nonResourceURLs: textsOf(nonResourceURLs),
  };
}

/** Whether a rule allows a request. */
export function ruleAllows(rule: PolicyRule, attributes: AccessAttributes): boolean {
  if (!includesOrAll(rule.verbs, attributes.verb)) {
    return false;
  }
  if (attributes.path !== undefined) {
    const { path } = attributes;
    return rule.nonResourceURLs.some((url) => url === '*' || coversUrl(url, path));
  }
  return (
    includesOrAll(rule.apiGroups, attributes.group ?? '') &&
    allowsResource(rule.resources, attributes.resource ?? '', attributes.subresource ?? '') &&
    (rule.resourceNames.length === 0 || rule.resourceNames.includes(attributes.name ?? ''))
  );
}

function includesOrAll(list: readonly string[], value: string): boolean {
  return list.includes('*') || list.includes(value);
}

function allowsResource(resources: readonly string[], resource: string, subresource: string): boolean {
  const attributes = subresource === '' ? resource : `${resource}/${subresource}`;
  return includesOrAll(resources, attributes) || (subresource !== '' && resources.includes(`*/${subresource}`));
}

/** Whether a non-resource URL of a rule, which may end in `*`, covers a path. */
function coversUrl(url: string, path: string): boolean {
  if (url === path) {
    return true;
  }
  if (!url.endsWith('*')) {
    return false;
  }
  let end = url.length;
  while (url[end - 1] === '*') {
    end -= 1;
  }
  return path.startsWith(url.slice(0, end));
}

/** The rules in `wanted` that `held` does not cover, split into rules with one verb and one resource or path each. */
export function missingRules(held: readonly PolicyRule[], wanted: readonly PolicyRule[]): readonly PolicyRule[] {
  const missing: PolicyRule[] = [];
  for (const rule of wanted) {
    for (const part of partsOf(rule)) {
      if (!held.some((one) => covers(one, part))) {
        missing.push(part);
      }
    }
  }
  return missing;
}

function* partsOf(rule: PolicyRule): Generator<PolicyRule> {
  // A rule without names covers all names.
  const names = rule.resourceNames.length === 0 ? [[]] : rule.resourceNames.map((name) => [name]);
  for (const group of rule.apiGroups) {
    for (const resource of rule.resources) {
      for (const verb of rule.verbs) {
        for (const resourceNames of names) {
          yield { verbs: [verb], apiGroups: [group], resources: [resource], resourceNames, nonResourceURLs: [] };
        }
      }
    }
  }
  for (const url of rule.nonResourceURLs) {
    for (const verb of rule.verbs) {
      yield { verbs: [verb], apiGroups: [], resources: [], resourceNames: [], nonResourceURLs: [url] };
    }
  }
}

/** @param part a rule from {@link partsOf} */
function covers(rule: PolicyRule, part: PolicyRule): boolean {
  const allIn = (list: readonly string[], wanted: readonly string[]): boolean =>
    list.includes('*') || wanted.every((one) => list.includes(one));
  return (
    allIn(rule.verbs, part.verbs) &&
    allIn(rule.apiGroups, part.apiGroups) &&
    part.resources.every((resource) => coversResource(rule.resources, resource)) &&
    part.nonResourceURLs.every((path) => rule.nonResourceURLs.some((url) => coversUrl(url, path))) &&
    (rule.resourceNames.length === 0 ||
      (part.resourceNames.length > 0 && part.resourceNames.every((name) => rule.resourceNames.includes(name))))
  );
}

function coversResource(resources: readonly string[], resource: string): boolean {
  const slash = resource.indexOf('/');
  return includesOrAll(resources, resource) || (slash !== -1 && resources.includes(`*/${resource.slice(slash + 1)}`));
}

/** Texts of {@link missingRules} for messages, sorted. Rules that differ only in their verb are merged. */
export function describeRules(rules: readonly PolicyRule[]): readonly string[] {
  const merged = new Map<string, { rule: PolicyRule; verbs: string[] }>();
  for (const rule of rules) {
    // API servers do not merge rules for paths.
    const isPath = rule.nonResourceURLs.length > 0;
    const key = JSON.stringify([rule.apiGroups, rule.resources, rule.resourceNames, isPath ? merged.size : -1]);
    const known = merged.get(key);
    if (known === undefined) {
      merged.set(key, { rule, verbs: [...rule.verbs] });
    } else {
      known.verbs.push(...rule.verbs);
    }
  }
  const texts = [...merged.values()].map(({ rule, verbs }) => describeRule({ ...rule, verbs }));
  return [...new Set(texts)].toSorted();
}

function describeRule(rule: PolicyRule): string {
  const parts: string[] = [];
  const add = (name: string, list: readonly string[]): void => {
    if (list.length > 0) {
      parts.push(`${name}:${quoteList(list)}`);
    }
  };
  add('APIGroups', rule.apiGroups);
  add('Resources', rule.resources);
  add('NonResourceURLs', rule.nonResourceURLs);
  add('ResourceNames', rule.resourceNames);
  add('Verbs', rule.verbs);
  return `{${parts.join(', ')}}`;
}

/** A list of strings as Go prints it: `["a" "b"]`. */
export function quoteList(list: readonly string[]): string {
  return `[${list.map(quote).join(' ')}]`;
}
