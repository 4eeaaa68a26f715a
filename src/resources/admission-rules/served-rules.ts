// Compares rules of policies with the resources that a cluster serves.
import { nearestKey } from '../../values/index.ts';
import type { FieldError } from '../field-error.ts';
import { apiVersionOf, type ResourceType } from '../resource-type.ts';
import { splitResource } from './rule-match.ts';

/** A resource that a cluster serves, as discovery describes it. */
export interface ServedResource extends ResourceType {
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly subresources: readonly string[];
}

/** The part of a rule that decides about resources. */
export interface ResourceRule {
  readonly apiGroups?: readonly string[];
  readonly apiVersions: readonly string[];
  readonly resources: readonly string[];
  readonly scope?: string;
}

/** How messages name what is served. */
export interface ServedWords {
  /** `the cluster serves` no resource of that name. */
  readonly has: string;
  /** `the cluster does not serve` a resource in that version. */
  readonly lacks: string;
}

const CLUSTER: ServedWords = { has: 'the cluster serves', lacks: 'the cluster does not serve' };

/** A rule that matches no resource, at the field to correct. */
export type UnservedRule = Pick<FieldError, 'field' | 'message'>;

const ALL = '*';
/** Maximum number of names in a message. */
const MAX_LISTED = 5;
/** Subresources of Kubernetes' kinds. A cluster may serve them without naming them in discovery, as the embedded one does. */
const KNOWN_SUBRESOURCES: ReadonlySet<string> = new Set(
  'approval attach binding ephemeralcontainers eviction exec finalize log portforward proxy resize scale status token'.split(
    ' ',
  ),
);

/**
 * Entries of `resources` that match nothing the cluster serves, with the field that is probably wrong: an unknown group, a
 * version that is not served, a misspelled resource, another scope. Wildcards are not judged.
 */
export function unservedRules(
  rules: readonly ResourceRule[],
  served: readonly ServedResource[],
  words: ServedWords = CLUSTER,
): readonly UnservedRule[] {
  return rules.flatMap((rule, index) => {
    const path = `spec.rules[${index}]`;
    const problems = rule.resources.map((_, entry) => problemOf(rule, path, entry, served, words));
    return problems.filter(
      (problem, at) => problem !== undefined && problems.findIndex((one) => one?.field === problem.field) === at,
    ) as UnservedRule[];
  });
}

function problemOf(
  rule: ResourceRule,
  path: string,
  entry: number,
  served: readonly ServedResource[],
  words: ServedWords,
): UnservedRule | undefined {
  const { apiGroups = [], apiVersions, scope = ALL } = rule;
  const [name, subresource] = splitResource(rule.resources[entry] ?? '');
  const inGroups = served.filter(({ group }) => includes(apiGroups, group));
  if (inGroups.length === 0) {
    return apiGroups.length === 0 ? undefined : unknownGroup(rule, `${path}.apiGroups`, name, served, words);
  }
  const named = inGroups.filter(({ resource }) => name === ALL || resource === name);
  if (named.length === 0) {
    return unknownResource(rule, `${path}.resources[${entry}]`, name, served, words);
  }
  const inVersions = named.filter(({ version }) => includes(apiVersions, version));
  if (inVersions.length === 0) {
    return apiVersions.length === 0 ? undefined : unknownVersion(rule, `${path}.apiVersions`, name, named, words);
  }
  const inScope = inVersions.filter((one) => isInScope(one, scope));
  if (inScope.length === 0) {
    const actual = scope === 'Cluster' ? 'Namespaced' : 'Cluster';
    const message = `no resource of the rule has the scope ${scope}: ${name === ALL ? 'all have' : `"${name}" has`} the scope ${actual}`;
    return { field: `${path}.scope`, message };
  }
  return unknownSubresource(`${path}.resources[${entry}]`, name, subresource, inScope, words);
}

function isInScope({ namespaced }: ServedResource, scope: string): boolean {
  return scope === ALL || scope === (namespaced ? 'Namespaced' : 'Cluster');
}

function includes(list: readonly string[], value: string): boolean {
  return list.includes(ALL) || list.includes(value);
}

function unknownGroup(
  { apiGroups = [] }: ResourceRule,
  field: string,
  name: string,
  served: readonly ServedResource[],
  { has }: ServedWords,
): UnservedRule {
  const groups = [...new Set(served.map(({ group }) => group))];
  const owners = groupsOf(name, served);
  const nearest = nearestKey(
    apiGroups[0] ?? '',
    groups.filter((group) => group !== ''),
  );
  const hint =
    owners.length > 0
      ? `: ${name} are in ${quoted(owners)}`
      : nearest === undefined
        ? ''
        : `. Did you mean "${nearest}"?`;
  return { field, message: `${has} no API group ${quoted(apiGroups)}${hint}` };
}

function unknownVersion(
  { apiVersions }: ResourceRule,
  field: string,
  name: string,
  named: readonly ServedResource[],
  { lacks }: ServedWords,
): UnservedRule {
  const versions = [...new Set(named.map(({ version }) => version))];
  const what = name === ALL ? 'resources of the group' : name;
  return {
    field,
    message: `${lacks} ${what} in version ${quoted(apiVersions)}: it serves ${quoted(versions)}`,
  };
}

function unknownResource(
  { apiGroups = [] }: ResourceRule,
  field: string,
  name: string,
  served: readonly ServedResource[],
  { has }: ServedWords,
): UnservedRule {
  const owners = groupsOf(name, served);
  const meant = meantResource(name, apiGroups, served);
  const hint =
    owners.length > 0 ? `: ${name} are in ${quoted(owners)}` : meant === undefined ? '' : `. Did you mean ${meant}?`;
  return { field, message: `${has} no resource "${name}" in apiGroups ${quoted(apiGroups)}${hint}` };
}

/** The resource of some groups that a name probably means: by its kind, singular, short name, or a similar name. */
export function meantResource(
  name: string,
  apiGroups: readonly string[],
  served: readonly ServedResource[],
): string | undefined {
  const lower = name.toLowerCase();
  const inGroups = served.filter(({ group }) => includes(apiGroups, group));
  const isAlias = ({ kind, singular, shortNames, resource }: ServedResource): boolean =>
    [kind.toLowerCase(), singular, resource, ...shortNames].includes(lower);
  return inGroups.find(isAlias)?.resource ?? nearestKey(lower, [...new Set(inGroups.map(({ resource }) => resource))]);
}

function unknownSubresource(
  field: string,
  name: string,
  subresource: string,
  matching: readonly ServedResource[],
  { has }: ServedWords,
): UnservedRule | undefined {
  const known = new Set(matching.flatMap(({ subresources }) => subresources));
  if (subresource === '' || subresource === ALL || known.has(subresource) || KNOWN_SUBRESOURCES.has(subresource)) {
    return undefined;
  }
  const nearest = nearestKey(subresource, [...known, ...KNOWN_SUBRESOURCES]);
  const hint = nearest === undefined ? '' : `. Did you mean ${name}/${nearest}?`;
  return { field, message: `${has} no subresource "${name}/${subresource}"${hint}` };
}

function groupsOf(name: string, served: readonly ServedResource[]): readonly string[] {
  return [...new Set(served.filter(({ resource }) => resource === name).map(({ group }) => group))];
}

function quoted(texts: readonly string[]): string {
  const shown = texts.slice(0, MAX_LISTED).map((text) => `"${text}"`);
  return [...shown, ...(texts.length > MAX_LISTED ? ['…'] : [])].join(', ');
}

/** The kinds of objects in requests that rules match. */
export interface MatchedKinds {
  /** In order of group, version and kind; at most as many as asked for. */
  readonly kinds: readonly ServedResource[];
  /** Whether requests may have objects of other kinds: by a wildcard, of a subresource, or of too many kinds. */
  readonly isPartial: boolean;
}

/** Subresources whose requests contain the object itself. */
const SAME_OBJECT: ReadonlySet<string> = new Set(['', 'status', 'ephemeralcontainers', 'resize']);

/** The kinds that rules match by name, like an API server finds those whose types it checks in its own policies. */
export function matchedKinds(
  rules: readonly ResourceRule[],
  served: readonly ServedResource[],
  limit: number,
): MatchedKinds {
  const kinds = new Map<string, ServedResource>();
  let isPartial = false;
  for (const { apiGroups = [], apiVersions, resources, scope = ALL } of rules) {
    for (const [name, subresource] of resources.map(splitResource)) {
      if (name === ALL || !SAME_OBJECT.has(subresource)) {
        isPartial = true;
        continue;
      }
      for (const one of served) {
        const isIncluded = includes(apiGroups, one.group) && includes(apiVersions, one.version);
        if (one.resource === name && isIncluded && isInScope(one, scope)) {
          kinds.set(kindName(one), one);
        }
      }
    }
  }
  const sorted = [...kinds].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, kind]) => kind);
  return { kinds: sorted.slice(0, limit), isPartial: isPartial || sorted.length > limit };
}

/** `v1 Pod`, `apps/v1 Deployment`: the name of a kind in messages. */
export function kindName(type: Pick<ResourceType, 'group' | 'version' | 'kind'>): string {
  return `${apiVersionOf(type)} ${type.kind}`;
}
