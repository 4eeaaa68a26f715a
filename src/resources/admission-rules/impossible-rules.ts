// Finds what in the rules of a policy matches no request in any cluster. Groups of Kubernetes have no custom resources, so their
// resources are known without a cluster.
import { nearestKey } from '../../values/index.ts';
import { allBuiltinKinds, builtinKinds } from '../kubernetes/builtin-kinds.ts';
import { isRemovedVersion } from '../kubernetes/removed-versions.ts';
import { splitResource } from './rule-match.ts';
import {
  meantResource,
  type ResourceRule,
  type ServedResource,
  type UnservedRule,
  unservedRules,
} from './served-rules.ts';

/** The part of a rule that decides which requests it can match. */
export interface RequestRule extends ResourceRule {
  readonly operations?: readonly string[];
}

/** An entry of a rule that matches no request, at the field to correct. */
export type ImpossibleRule = UnservedRule;

const ALL = '*';
/** Entries of each list that are judged; each is compared with all kinds. Kubernetes has 70 kinds. */
const MAX_ENTRIES = 100;
/** Nobody corrects more at once. */
const MAX_FOUND = 20;
/** Groups without a dot, which have no custom resources, of releases before the oldest supported one. */
const REMOVED_GROUPS: ReadonlySet<string> = new Set(['extensions']);
/** Versions besides the preferred one. */
const MORE_VERSIONS: ReadonlyMap<string, readonly string[]> = new Map([['autoscaling', ['v1']]]);

/** Subresources by `resource.group`, besides `status`. */
const SUBRESOURCES: ReadonlyMap<string, readonly string[]> = new Map([
  ['pods.', ['attach', 'binding', 'ephemeralcontainers', 'eviction', 'exec', 'log', 'portforward', 'proxy', 'resize']],
  ['namespaces.', ['finalize']],
  ['nodes.', ['proxy']],
  ['services.', ['proxy']],
  ['serviceaccounts.', ['token']],
  ['replicationcontrollers.', ['scale']],
  ['deployments.apps', ['scale']],
  ['replicasets.apps', ['scale']],
  ['statefulsets.apps', ['scale']],
  ['certificatesigningrequests.certificates.k8s.io', ['approval']],
]);

/** Operations on objects of a kind. */
const OBJECT_OPERATIONS = ['CREATE', 'UPDATE', 'DELETE'];
/** Operations of requests for subresources. API servers call no webhooks for reads such as that of `log`. */
const SUBRESOURCE_OPERATIONS: Readonly<Record<string, readonly string[]>> = {
  approval: ['UPDATE'],
  attach: ['CONNECT'],
  binding: ['CREATE'],
  ephemeralcontainers: ['UPDATE'],
  eviction: ['CREATE'],
  exec: ['CONNECT'],
  finalize: ['UPDATE'],
  log: [],
  portforward: ['CONNECT'],
  proxy: ['CONNECT'],
  resize: ['UPDATE'],
  scale: ['UPDATE'],
  status: ['UPDATE'],
  token: ['CREATE'],
};

const WORDS = { has: 'Kubernetes has', lacks: 'Kubernetes does not serve' };

/** Kubernetes' kinds in all their versions. */
const BUILTIN: readonly ServedResource[] = allBuiltinKinds().flatMap((kind) => {
  const subresources = [...(SUBRESOURCES.get(`${kind.resource}.${kind.group}`) ?? []), 'status'];
  const versions = [kind.version, ...(MORE_VERSIONS.get(kind.group) ?? [])];
  return versions.map((version) => ({ ...kind, version, subresources }));
});

/**
 * Entries of rules that match no request in any cluster: a kind or a singular as resource, a resource of another group, a version
 * that does not exist, an operation that the resource does not have. Unknown names in groups that may have custom resources are
 * not judged, nor is what newer releases may have.
 *
 * @param served what a cluster serves, perhaps of a newer release. Default: not known
 */
export function impossibleRules(
  rules: readonly RequestRule[],
  served: readonly ServedResource[] = [],
): readonly ImpossibleRule[] {
  const known = served.length === 0 ? BUILTIN : [...BUILTIN, ...served];
  const found: ImpossibleRule[] = [];
  for (const [index, whole] of rules.entries()) {
    const rule = shortened(whole);
    const path = `spec.rules[${index}]`;
    const malformed = malformedNames(rule, path);
    found.push(
      ...(malformed.length > 0
        ? malformed
        : [...unknownNames(rule, path, known), ...neverRequested(rule, path, known)]),
    );
    if (found.length >= MAX_FOUND) {
      break;
    }
  }
  return found.slice(0, MAX_FOUND);
}

/** With lists of at most {@link MAX_ENTRIES}; of groups either all or none are judged. */
function shortened(rule: RequestRule): RequestRule {
  const { apiGroups = [], apiVersions, resources } = rule;
  return {
    ...rule,
    apiGroups: apiGroups.length > MAX_ENTRIES ? [ALL] : apiGroups,
    apiVersions: apiVersions.length > MAX_ENTRIES ? [ALL] : apiVersions,
    resources: resources.slice(0, MAX_ENTRIES),
  };
}

/** Names that no API has: a kind as resource, a group as version, a version as group. */
function malformedNames({ apiGroups = [], apiVersions, resources }: RequestRule, path: string): ImpossibleRule[] {
  const at = (
    list: string,
    texts: readonly string[],
    messageOf: (text: string) => string | undefined,
  ): ImpossibleRule[] =>
    texts.flatMap((text, index) => {
      const message = messageOf(text);
      return message === undefined ? [] : [{ field: `${path}.${list}[${index}]`, message }];
    });
  return [
    ...at('resources', resources, (text) =>
      /[A-Z]/.test(text)
        ? `"${text}" is no resource: write it in lower case and in the plural, such as "${pluralOf(text, apiGroups)}"`
        : undefined,
    ),
    ...at('apiVersions', apiVersions, (text) =>
      text.includes('/')
        ? `"${text}" is no version: expected "${text.slice(text.indexOf('/') + 1)}" here, and the group in apiGroups`
        : undefined,
    ),
    ...at('apiGroups', apiGroups, (text) =>
      /^v[0-9]+((alpha|beta)[0-9]+)?$/.test(text) || text.includes('/')
        ? `"${text}" is no API group: expected "" for the core group, or a name such as "apps" without a version`
        : undefined,
    ),
  ];
}

function pluralOf(text: string, apiGroups: readonly string[]): string {
  const [name] = splitResource(text.toLowerCase());
  const isNamed = ({ singular, resource }: ServedResource): boolean => singular === name || resource === name;
  const named = BUILTIN.filter(isNamed);
  return (named.find(({ group }) => apiGroups.includes(group)) ?? named[0])?.resource ?? 'pods';
}

/** Groups, resources, versions and scopes that Kubernetes does not have. */
function unknownNames(rule: RequestRule, path: string, known: readonly ServedResource[]): readonly ImpossibleRule[] {
  const { apiGroups = [], apiVersions } = rule;
  const resources = rule.resources.map((text) => splitResource(text)[0]);
  if (apiGroups.length === 0 || !apiGroups.every(isKnownGroup)) {
    return [];
  }
  // All kinds of groups without a dot are known; others have kinds and versions that not all releases serve.
  const isWhollyKnown = apiGroups.every((group) => !group.includes('.'));
  const isRemoved = apiGroups.some((group) =>
    apiVersions.some((version) => resources.some((resource) => isRemovedVersion(group, version, resource))),
  );
  const isJudged = (name: string): boolean =>
    name !== '' && (isWhollyKnown || meantResource(name, apiGroups, BUILTIN) !== undefined || isElsewhere(name));
  const judged = {
    ...rule,
    resources: resources.map((name) => (isJudged(name) ? name : ALL)),
    apiVersions: isWhollyKnown && !isRemoved ? apiVersions : [ALL],
  };
  return unservedRules([judged], known, WORDS).map(({ field, message }) => ({
    field: field.replace('spec.rules[0]', () => path),
    message,
  }));
}

function isElsewhere(name: string): boolean {
  return BUILTIN.some(({ resource }) => resource === name);
}

function isKnownGroup(group: string): boolean {
  return builtinKinds(group).length > 0 || (!/[.*]/.test(group) && !REMOVED_GROUPS.has(group));
}

/** Subresources that their resource does not have, and resources without requests of the rule's operations. */
function neverRequested(
  { apiGroups = [], resources, operations = [ALL] }: RequestRule,
  path: string,
  known: readonly ServedResource[],
): readonly ImpossibleRule[] {
  return apiGroups.every(isKnownGroup)
    ? resources.flatMap((text, index) => {
        const [name, subresource] = splitResource(text);
        const kinds = known.filter(({ group, resource }) => resource === name && apiGroups.includes(group));
        const message = kinds.length === 0 ? undefined : requestProblem(text, subresource, operations, kinds);
        return message === undefined ? [] : [{ field: `${path}.resources[${index}]`, message }];
      })
    : [];
}

function requestProblem(
  text: string,
  subresource: string,
  operations: readonly string[],
  kinds: readonly ServedResource[],
): string | undefined {
  const known = [...new Set(kinds.flatMap(({ subresources }) => subresources))];
  if (subresource === ALL || (subresource !== '' && !known.includes(subresource))) {
    return subresource === ALL ? undefined : unknownSubresource(text, subresource, known);
  }
  const sent = subresource === '' ? OBJECT_OPERATIONS : (SUBRESOURCE_OPERATIONS[subresource] ?? OBJECT_OPERATIONS);
  if (sent.length === 0) {
    return `API servers call no webhooks for "${text}", which is only read. Control access to it with RBAC`;
  }
  return operations.length === 0 || [ALL, ...sent].some((one) => operations.includes(one))
    ? undefined
    : `requests for "${text}" have the operation ${sent.join(', ')}, never ${operations.join(', ')}`;
}

/** Newer releases may have subresources that are unknown here, but not those of other kinds. */
function unknownSubresource(text: string, subresource: string, known: readonly string[]): string | undefined {
  const [name] = splitResource(text);
  const nearest = nearestKey(subresource, known);
  const isOfOthers = Object.hasOwn(SUBRESOURCE_OPERATIONS, subresource);
  const hint = nearest === undefined ? `: it has ${known.join(', ')}` : `. Did you mean ${name}/${nearest}?`;
  return isOfOthers || nearest !== undefined ? `${WORDS.has} no subresource "${text}"${hint}` : undefined;
}
