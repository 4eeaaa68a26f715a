// Validation of roles, bindings, autoscalers and admission configurations.
import { isDeepStrictEqual } from 'node:util';
import { dnsSubdomainProblems, pathSegmentProblems, qualifiedNameProblems } from '../../../names/index.ts';
import type { KubernetesObject } from '../../../resources/index.ts';
import type { CheckedValue } from '../../../resources/kind-validation/index.ts';

type Old = KubernetesObject | undefined;

const RBAC_GROUP = 'rbac.authorization.k8s.io';

export const checkRole = (object: CheckedValue): void => checkRules(object.at('rules'), true);

export function checkClusterRole(object: CheckedValue): void {
  checkRules(object.at('rules'), false);
  const selectors = object.at('aggregationRule').at('clusterRoleSelectors');
  if (object.at('aggregationRule').isSet) {
    selectors.needed('at least one clusterRoleSelector required if aggregationRule is non-nil');
  }
  for (const selector of selectors.items) {
    selector.labelSelector();
  }
}

function checkRules(rules: CheckedValue, isNamespaced: boolean): void {
  for (const rule of rules.items) {
    const [groups, resources, urls] = [rule.at('apiGroups'), rule.at('resources'), rule.at('nonResourceURLs')];
    rule.at('verbs').needed('verbs must contain at least one value');
    if (!urls.isEmpty) {
      if (isNamespaced) {
        urls.invalid('namespaced rules cannot apply to non-resource URLs');
      }
      if (!groups.isEmpty || !resources.isEmpty || !rule.at('resourceNames').isEmpty) {
        urls.invalid('rules cannot apply to both regular resources and non-resource URLs');
      }
    } else {
      groups.needed('resource rules must supply at least one api group');
      resources.needed('resource rules must supply at least one resource');
    }
  }
}

export const checkRoleBinding = (object: CheckedValue, old: Old): void =>
  checkBinding(object, old, ['Role', 'ClusterRole']);

export const checkClusterRoleBinding = (object: CheckedValue, old: Old): void =>
  checkBinding(object, old, ['ClusterRole']);

function checkBinding(object: CheckedValue, old: Old, kinds: readonly string[]): void {
  const reference = object.at('roleRef');
  reference.at('apiGroup').oneOf([RBAC_GROUP]);
  if (reference.at('kind').text === '' || !kinds.includes(reference.at('kind').text)) {
    reference.at('kind').unsupported(reference.at('kind').text, kinds);
  }
  if (reference.at('name').needed()) {
    reference.at('name').follows(pathSegmentProblems);
  }
  for (const subject of object.at('subjects').items) {
    checkSubject(subject, kinds.length > 1);
  }
  if (old !== undefined && !isDeepStrictEqual(reference.value, old['roleRef'])) {
    const [group, kind, name] = ['apiGroup', 'kind', 'name'].map((field) => reference.at(field).text);
    reference.invalid('cannot change roleRef', { APIGroup: group, Kind: kind, Name: name });
  }
}

function checkSubject(subject: CheckedValue, isNamespaced: boolean): void {
  const [kind, name, group] = [subject.at('kind').text, subject.at('name'), subject.at('apiGroup')];
  name.needed();
  if (kind === 'ServiceAccount') {
    name.follows(dnsSubdomainProblems);
    if (group.text !== '') {
      group.oneOf(['']);
    }
    if (!isNamespaced && subject.at('namespace').text === '') {
      subject.at('namespace').required();
    }
  } else if (kind === 'User' || kind === 'Group') {
    group.oneOf([RBAC_GROUP]);
  } else {
    subject.at('kind').unsupported(kind, ['ServiceAccount', 'User', 'Group']);
  }
}

const METRIC_SOURCES: Readonly<Record<string, string>> = {
  ContainerResource: 'containerResource',
  External: 'external',
  Object: 'object',
  Pods: 'pods',
  Resource: 'resource',
};

export function checkHorizontalPodAutoscaler(object: CheckedValue): void {
  const spec = object.at('spec');
  const [min, max] = [spec.at('minReplicas'), spec.at('maxReplicas')];
  const metrics = spec.at('metrics');
  if (min.number !== undefined && min.number < 1) {
    min.invalid('must be greater than or equal to 1');
  }
  if ((max.number ?? 0) < 1) {
    max.invalid('must be greater than 0', max.number ?? 0);
  }
  if (min.number !== undefined && (max.number ?? 0) < min.number) {
    max.invalid('must be greater than or equal to `minReplicas`', max.number ?? 0);
  }
  checkScaleTarget(spec.at('scaleTargetRef'));
  metrics.items.forEach(checkMetric);
  const isZeroAllowed = metrics.items.some((metric) => ['Object', 'External'].includes(metric.at('type').text));
  if (min.number === 0 && !isZeroAllowed) {
    metrics.forbidden('must specify at least one Object or External metric to support scaling to zero replicas');
  }
  for (const direction of ['scaleUp', 'scaleDown']) {
    const rules = spec.at('behavior').at(direction);
    rules.at('stabilizationWindowSeconds').between(0, 3600);
    rules.at('selectPolicy').oneOf(['Disabled', 'Max', 'Min']);
  }
}

function checkScaleTarget(target: CheckedValue): void {
  for (const field of ['kind', 'name']) {
    if (target.at(field).needed()) {
      target.at(field).follows(pathSegmentProblems);
    }
  }
  const version = target.at('apiVersion');
  const isCore = target.at('kind').text === 'ReplicationController';
  if (!version.text.includes('/') && !(isCore && version.text === 'v1')) {
    version.invalid('apiVersion must specify API group', version.text);
  }
}

function checkMetric(metric: CheckedValue): void {
  const type = metric.at('type').text;
  const field = Object.hasOwn(METRIC_SOURCES, type) ? METRIC_SOURCES[type] : undefined;
  if (field === undefined) {
    // API servers report this error twice.
    for (let count = 0; count < 2; count += 1) {
      metric.at('type').unsupported(type, Object.keys(METRIC_SOURCES));
    }
    return;
  }
  const source = metric.at(field);
  if (!source.isSet) {
    source.required('must populate information for the given metric source');
    return;
  }
  const target = source.at('target');
  target.at('type').oneOf(['Utilization', 'Value', 'AverageValue']);
  const percent = target.at('averageUtilization');
  if (percent.number !== undefined && percent.number < 1) {
    percent.invalid('must be greater than 0');
  }
  for (const amount of [target.at('value'), target.at('averageValue')]) {
    if ((amount.quantity?.sign ?? 1) !== 1) {
      amount.invalid('must be positive', amount.quantity?.toString());
    }
  }
}

const OPERATIONS = ['*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE'];
const REVIEW_VERSIONS = ['v1', 'v1beta1'];

export function checkWebhooks(object: CheckedValue): void {
  object.at('webhooks').items.forEach(checkWebhook);
  object.at('webhooks').uniqueNames();
}

function checkWebhook(webhook: CheckedValue): void {
  checkWebhookName(webhook.at('name'));
  const effects = webhook.at('sideEffects');
  if (effects.needed('must specify one of None, NoneOnDryRun')) {
    effects.oneOf(['None', 'NoneOnDryRun']);
  }
  const versions = webhook.at('admissionReviewVersions');
  if (versions.needed('must specify one of v1, v1beta1')) {
    if (!versions.items.some(({ text }) => REVIEW_VERSIONS.includes(text))) {
      versions.invalid('must include at least one of v1, v1beta1');
    }
  }
  webhook.at('failurePolicy').oneOf(['Fail', 'Ignore']);
  webhook.at('matchPolicy').oneOf(['Equivalent', 'Exact']);
  webhook.at('reinvocationPolicy').oneOf(['IfNeeded', 'Never']);
  const seconds = webhook.at('timeoutSeconds');
  if (seconds.number !== undefined && (seconds.number < 1 || seconds.number > 30)) {
    seconds.invalid('the timeout value must be between 1 and 30 seconds');
  }
  webhook.at('namespaceSelector').labelSelector();
  webhook.at('objectSelector').labelSelector();
  webhook.at('rules').items.forEach(checkRule);
  checkClient(webhook.at('clientConfig'));
  checkConditions(webhook.at('matchConditions'));
}

/** Validates the name of a webhook: a domain name with at least three segments. */
function checkWebhookName(name: CheckedValue): void {
  if (!name.needed()) {
    return;
  }
  const problems = dnsSubdomainProblems(name.text);
  problems.forEach((problem) => name.invalid(problem));
  if (problems.length === 0 && name.text.split('.').length < 3) {
    name.invalid('should be a domain with at least three segments separated by dots');
  }
}

function checkRule(rule: CheckedValue): void {
  const operations = rule.at('operations');
  operations.needed();
  checkWildcard(operations, 'operations');
  for (const operation of operations.items) {
    operation.oneOf(OPERATIONS);
  }
  for (const [field, text] of [
    ['apiGroups', 'API groups'],
    ['apiVersions', 'API versions'],
  ] as const) {
    rule.at(field).needed();
    checkWildcard(rule.at(field), text);
  }
  const resources = rule.at('resources');
  resources.needed();
  const names = resources.items.map(({ text }) => text);
  // API servers check the last one only: they refuse `["*", "pods"]`, but not `["pods", "*"]`.
  const lastWhole = names.findLast((name) => !name.includes('/'));
  if (names.includes('*/*') && names.length > 1) {
    resources.invalid("if '*/*' is present, must not specify other resources");
  } else if (names.includes('*') && lastWhole !== '*') {
    resources.invalid("if '*' is present, must not specify other resources without subresources");
  }
  rule.at('scope').oneOf(['*', 'Cluster', 'Namespaced']);
}

function checkWildcard(list: CheckedValue, what: string): void {
  if (list.items.length > 1 && list.items.some(({ text }) => text === '*')) {
    list.invalid(`if '*' is present, must not specify other ${what}`);
  }
}

function checkClient(client: CheckedValue): void {
  const [url, service] = [client.at('url'), client.at('service')];
  if (url.isSet === service.isSet) {
    client.required('exactly one of url or service is required');
  } else if (url.isSet) {
    checkUrl(url);
  } else {
    service.at('name').needed();
    service.at('namespace').needed();
    service.at('port').port();
  }
}

const URL_FORM = '; desired format: https://host[/path]';

function checkUrl(place: CheckedValue): void {
  const url = URL.parse(place.text);
  if (url === null) {
    place.invalid(`url must be a valid URL${URL_FORM}`);
    return;
  }
  if (url.protocol !== 'https:') {
    place.invalid(`'https' is the only allowed URL scheme${URL_FORM}`, url.protocol.slice(0, -1));
  }
  if (url.host === '') {
    place.invalid(`host must be specified${URL_FORM}`, '');
  }
  if (url.username !== '' || url.password !== '') {
    place.invalid('user information is not permitted in the URL', url.username);
  }
  if (url.hash !== '') {
    place.invalid('fragments are not permitted in the URL', url.hash.slice(1));
  }
  if (url.search !== '') {
    place.invalid('query parameters are not permitted in the URL', url.search.slice(1));
  }
}

function checkConditions(conditions: CheckedValue): void {
  for (const condition of conditions.items) {
    condition.at('expression').needed();
    if (condition.at('name').needed()) {
      condition.at('name').follows(qualifiedNameProblems);
    }
  }
  conditions.uniqueNames();
}

export function checkValidatingAdmissionPolicy(object: CheckedValue): void {
  const spec = object.at('spec');
  const [validations, annotations] = [spec.at('validations'), spec.at('auditAnnotations')];
  if (validations.isEmpty && annotations.isEmpty) {
    for (const place of [validations, annotations]) {
      place.required('validations or auditAnnotations must contain at least one item');
    }
  }
  for (const validation of validations.items) {
    if (validation.at('expression').text.trim() === '') {
      validation.at('expression').required('expression is not specified');
    }
  }
  spec.at('failurePolicy').oneOf(['Fail', 'Ignore']);
  if (spec.at('matchConstraints').needed()) {
    const rules = spec.at('matchConstraints').at('resourceRules');
    rules.needed();
    rules.items.forEach(checkRule);
  }
  checkConditions(spec.at('matchConditions'));
}

export function checkValidatingAdmissionPolicyBinding(object: CheckedValue): void {
  const spec = object.at('spec');
  if (spec.at('policyName').needed()) {
    spec.at('policyName').follows(dnsSubdomainProblems);
  }
  spec.at('validationActions').needed('at least one validation action is required');
  for (const action of spec.at('validationActions').items) {
    action.oneOf(['Audit', 'Deny', 'Warn']);
  }
}
