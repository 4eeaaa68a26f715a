import {
  duplicate,
  invalid,
  notSupported,
  required,
  ruleMatches,
  Selector,
  unmetConstraint,
} from '../../resources/index.ts';
import { pathSegmentProblems } from '../../names/index.ts';
import type { GroupVersionResource, Labels } from '../../resources/index.ts';
import type { FieldReader } from '../values/field-reader.ts';
import { isJsonObject } from '../values/json-text.ts';
import type { CelRequest } from './admission-request.ts';
import { readChoice } from '../values/field-problem.ts';
import type { FieldProblem } from '../values/field-problem.ts';
import { labelsOf } from '../values/object-labels.ts';
import { readLabelSelector } from './label-selector.ts';
import type { NamespaceSource } from './sources.ts';

/** The requests that a policy or a binding matches (`matchConstraints`, `matchResources`). */
export interface MatchResources {
  readonly namespaceSelector: Selector;
  readonly objectSelector: Selector;
  readonly resourceRules: readonly ResourceRule[];
  readonly excludeResourceRules: readonly ResourceRule[];
  readonly matchPolicy: 'Exact' | 'Equivalent';
}

interface ResourceRule {
  readonly apiGroups: readonly string[];
  readonly apiVersions: readonly string[];
  readonly operations: readonly string[];
  readonly resources: readonly string[];
  readonly scope: (typeof SCOPES)[number];
  readonly resourceNames: readonly string[];
}

const SCOPES = ['*', 'Cluster', 'Namespaced'] as const;
const OPERATIONS = ['*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE'];
/** A DELETE request has no object to mutate. */
const MUTATING_OPERATIONS = OPERATIONS.filter((operation) => operation !== 'DELETE');

const KEYS = ['namespaceSelector', 'objectSelector', 'resourceRules', 'excludeResourceRules', 'matchPolicy'];
const RULE_KEYS = ['apiGroups', 'apiVersions', 'operations', 'resources', 'scope', 'resourceNames'];

/** Reads and validates them like an API server, with its defaults applied. */
export function readMatchResources(
  fields: FieldReader,
  problems: FieldProblem[],
  options: { readonly isMutating: boolean; readonly needsRules: boolean },
): MatchResources {
  fields.knownKeys(KEYS);
  const matchPolicy = readChoice(fields, 'matchPolicy', ['Equivalent', 'Exact'], 'Equivalent', problems);
  const namespaceSelector = readLabelSelector(fields, 'namespaceSelector', problems) ?? Selector.EVERYTHING;
  const objectSelector = readLabelSelector(fields, 'objectSelector', problems) ?? Selector.EVERYTHING;
  const resourceRules = fields.each('resourceRules').map((rule) => readRule(rule, problems));
  const excludeResourceRules = fields.each('excludeResourceRules').map((rule) => readRule(rule, problems));
  if (options.needsRules && resourceRules.length === 0) {
    problems.push(required(fields.at('resourceRules')));
  }
  if (options.isMutating) {
    for (const operation of resourceRules.flatMap((rule) => rule.operations)) {
      if (!MUTATING_OPERATIONS.includes(operation)) {
        problems.push(notSupported(`${fields.at('resourceRules')}.operations`, operation, MUTATING_OPERATIONS));
      }
    }
  }
  return { namespaceSelector, objectSelector, resourceRules, excludeResourceRules, matchPolicy };
}

function readRule(fields: FieldReader, problems: FieldProblem[]): ResourceRule {
  fields.knownKeys(RULE_KEYS);
  const rule = {
    apiGroups: fields.texts('apiGroups'),
    apiVersions: fields.texts('apiVersions'),
    operations: fields.texts('operations'),
    resources: fields.texts('resources'),
    resourceNames: fields.texts('resourceNames'),
    scope: readChoice(fields, 'scope', SCOPES, '*', problems),
  };
  checkNames(rule.resourceNames, fields.at('resourceNames'), problems);
  const check = (key: 'operations' | 'apiGroups' | 'apiVersions', others: string): void => {
    const values = rule[key];
    if (values.length === 0) {
      problems.push(required(fields.at(key)));
    }
    if (values.length > 1 && values.includes('*')) {
      problems.push(invalid(fields.at(key), values, `if '*' is present, must not specify other ${others}`));
    }
  };
  check('operations', 'operations');
  for (const [index, operation] of rule.operations.entries()) {
    if (!OPERATIONS.includes(operation)) {
      problems.push(notSupported(`${fields.at('operations')}[${index}]`, operation, OPERATIONS));
    }
  }
  check('apiGroups', 'API groups');
  check('apiVersions', 'API versions');
  for (const [index, version] of rule.apiVersions.entries()) {
    if (version === '') {
      problems.push(required(`${fields.at('apiVersions')}[${index}]`));
    }
  }
  checkResources(rule.resources, fields.at('resources'), problems);
  return rule;
}

function checkNames(names: readonly string[], path: string, problems: FieldProblem[]): void {
  for (const [index, name] of names.entries()) {
    for (const problem of pathSegmentProblems(name)) {
      problems.push(invalid(`${path}[${index}]`, name, problem));
    }
    if (names.indexOf(name) < index) {
      problems.push(duplicate(`${path}[${index}]`, name));
    }
  }
}

function checkResources(resources: readonly string[], path: string, problems: FieldProblem[]): void {
  if (resources.length === 0) {
    problems.push(required(path));
  }
  const wholeResources = new Set<string>();
  const wholeSubresources = new Set<string>();
  let isLastPlain = false;
  for (const [index, resource] of resources.entries()) {
    const at = `${path}[${index}]`;
    const slash = resource.indexOf('/');
    if (resource === '') {
      problems.push(required(at));
    } else if (slash < 0) {
      isLastPlain = resource !== '*';
    } else {
      const name = resource.slice(0, slash);
      const sub = resource.slice(slash + 1);
      if (wholeResources.has(name)) {
        problems.push(invalid(at, resource, `if '${name}/*' is present, must not specify ${resource}`));
      }
      if (wholeSubresources.has(sub)) {
        problems.push(invalid(at, resource, `if '*/${sub}' is present, must not specify ${resource}`));
      }
      if (sub === '*') {
        wholeResources.add(name);
      }
      if (name === '*') {
        wholeSubresources.add(sub);
      }
    }
  }
  if (resources.length > 1 && resources.includes('*/*')) {
    problems.push(invalid(path, resources, "if '*/*' is present, must not specify other resources"));
  }
  if (resources.includes('*') && isLastPlain) {
    problems.push(invalid(path, resources, "if '*' is present, must not specify other resources without subresources"));
  }
}

/** The resource and kind by which a request matched: `request.resource` and `request.kind`. */
export interface Match {
  readonly resource: GroupVersionResource;
  readonly kind: { readonly group: string; readonly version: string; readonly kind: string };
}

/**
 * Whether a request matches. An equivalent version is considered only if the request contains it (`resource` beside
 * `requestResource`), because only a cluster knows all versions. Namespaces are looked up only when nothing else
 * excludes the request; errors of the lookup are thrown.
 */
export function matchRequest(
  match: MatchResources,
  request: CelRequest,
  namespaces: NamespaceSource,
): Match | undefined {
  const byNamespace = attempt(() => selectsNamespace(match.namespaceSelector, request, namespaces));
  if (byNamespace === false || !selectsObject(match.objectSelector, request)) {
    return undefined;
  }
  if (matchRules(match.excludeResourceRules, match.matchPolicy, request) !== undefined) {
    return undefined;
  }
  const found =
    match.resourceRules.length === 0
      ? { resource: request.requestResource, kind: request.requestKind }
      : matchRules(match.resourceRules, match.matchPolicy, request);
  if (found !== undefined && byNamespace !== true) {
    throw byNamespace.error;
  }
  return found;
}

/**
 * Why a request does not match: the constraint that excludes it. Undefined if it matches.
 * @throws NamespaceMissing as {@link matchRequest}
 */
export function unmatchedBecause(
  match: MatchResources,
  request: CelRequest,
  namespaces: NamespaceSource,
): string | undefined {
  if (matchRequest(match, request, namespaces) !== undefined) {
    return undefined;
  }
  const { resourceRules, excludeResourceRules, matchPolicy, objectSelector } = match;
  if (resourceRules.length > 0 && matchRules(resourceRules, matchPolicy, request) === undefined) {
    return `resourceRules are for other requests (${unmetRule(resourceRules, request)})`;
  }
  if (matchRules(excludeResourceRules, matchPolicy, request) !== undefined) {
    return 'excludeResourceRules exclude it';
  }
  return selectsObject(objectSelector, request)
    ? `namespaceSelector does not select the namespace ${request.namespace}`
    : 'objectSelector selects neither the object nor the old one';
}

function unmetRule(rules: readonly ResourceRule[], request: CelRequest): string {
  const { operation, subResource: subresource, namespace, requestResource } = request;
  const unmet = unmetConstraint(rules, { operation, subresource, namespace }, requestResource);
  const names = new Set(rules.flatMap(({ resourceNames }) => resourceNames));
  return unmet ?? `resourceNames: ${[...names].join(', ')}`;
}

function attempt<Value>(run: () => Value): Value | { readonly error: unknown } {
  try {
    return run();
  } catch (error) {
    return { error };
  }
}

function selectsNamespace(selector: Selector, request: CelRequest, namespaces: NamespaceSource): boolean {
  const { resource } = request.requestResource;
  if (selector.requirements.length === 0 || (request.namespace === '' && resource !== 'namespaces')) {
    return true;
  }
  return selector.matches(namespaceLabels(request, namespaces));
}

function namespaceLabels(request: CelRequest, namespaces: NamespaceSource): Labels | undefined {
  const isOwn =
    request.requestResource.resource === 'namespaces' &&
    request.subResource === '' &&
    (request.operation === 'CREATE' || request.operation === 'UPDATE');
  if (isOwn) {
    return labelsOf(request.object);
  }
  const namespace = namespaces.get(request.namespace);
  if (namespace === undefined) {
    throw new NamespaceMissing(request.namespace);
  }
  return labelsOf(namespace);
}

/** The request's namespace does not exist. */
export class NamespaceMissing extends Error {
  constructor(name: string) {
    super(`namespaces "${name}" not found`);
  }
}

function selectsObject(selector: Selector, { object, oldObject }: CelRequest): boolean {
  return (
    selector.requirements.length === 0 ||
    [object, oldObject].some((one) => isJsonObject(one) && selector.matches(labelsOf(one)))
  );
}

function matchRules(
  rules: readonly ResourceRule[],
  matchPolicy: MatchResources['matchPolicy'],
  request: CelRequest,
): Match | undefined {
  const { requestResource, requestKind, resource, kind } = request;
  if (rules.some((rule) => matchesRule(rule, requestResource, request))) {
    return { resource: requestResource, kind: requestKind };
  }
  const isOther = resource.group !== requestResource.group || resource.version !== requestResource.version;
  return matchPolicy === 'Equivalent' && isOther && rules.some((rule) => matchesRule(rule, resource, request))
    ? { resource, kind }
    : undefined;
}

function matchesRule(rule: ResourceRule, resource: GroupVersionResource, request: CelRequest): boolean {
  const { operation, subResource: subresource, namespace, name } = request;
  return (
    ruleMatches(rule, { operation, subresource, namespace }, resource) &&
    (rule.resourceNames.length === 0 || rule.resourceNames.includes(name))
  );
}
