import { ApiError } from '../../../cluster/index.ts';
import {
  invalid,
  isJsonObject,
  labelSelector,
  parseFieldSelector,
  parseLabelSelector,
  required,
  SelectorError,
  textOf,
  textsOf,
} from '../../../resources/index.ts';
import type { FieldError, JsonObject, KubernetesObject } from '../../../resources/index.ts';
import type { AccessAttributes, Authorizer, UserInfo } from '../request/request.ts';
import type { PolicyRule } from './policy-rule.ts';
import type { RbacAuthorizer } from './rbac-authorizer.ts';

const GROUP = 'authorization.k8s.io';
const SERVER_METADATA: ReadonlySet<string> = new Set(['managedFields', 'creationTimestamp']);

/** Completes a SelfSubjectAccessReview. Throws ApiError 422. */
export function selfSubjectAccessReview(
  review: KubernetesObject,
  user: UserInfo,
  authorizer: Authorizer,
): KubernetesObject {
  const spec = specOf(review);
  refuse([...attributeErrors(spec), ...selectorErrors(spec), ...metadataErrors(review, 'must be empty')]);
  return decided(review, spec, user, authorizer);
}

/** Completes a SubjectAccessReview. Throws ApiError 422. */
export function subjectAccessReview(review: KubernetesObject, authorizer: Authorizer): KubernetesObject {
  const spec = specOf(review);
  refuse([...specErrors(spec), ...metadataErrors(review, 'must be empty')]);
  return decided(review, spec, subjectOf(spec), authorizer);
}

/** Completes a LocalSubjectAccessReview. Throws ApiError 400 or 422. */
export function localSubjectAccessReview(
  review: KubernetesObject,
  namespace: string,
  authorizer: Authorizer,
): KubernetesObject {
  const spec = specOf(review);
  const { namespace: own = '', ...metadata } = review.metadata;
  const errors = [
    ...specErrors(spec),
    ...metadataErrors({ ...review, metadata }, 'must be empty except for namespace'),
  ];
  const { resourceAttributes, nonResourceAttributes } = spec;
  if (isJsonObject(resourceAttributes) && textOf(resourceAttributes.namespace) !== own) {
    const field = 'spec.resourceAttributes.namespace';
    errors.push(invalid(field, textOf(resourceAttributes.namespace), 'must match metadata.namespace'));
  }
  if (isJsonObject(nonResourceAttributes)) {
    const shown = printedAttributes(nonResourceAttributes);
    errors.push(invalid('spec.nonResourceAttributes', shown, 'disallowed on this kind of request'));
  }
  refuse(errors);
  if (own !== namespace) {
    throw ApiError.badRequest(`spec.resourceAttributes.namespace must match namespace: ${namespace}`);
  }
  return decided(review, spec, subjectOf(spec), authorizer);
}

/** Completes a SelfSubjectRulesReview. Throws ApiError 400. */
export function selfSubjectRulesReview(
  review: KubernetesObject,
  user: UserInfo,
  authorizer: RbacAuthorizer,
): KubernetesObject {
  const namespace = textOf(specOf(review).namespace);
  if (namespace === '') {
    throw ApiError.badRequest('no namespace on request');
  }
  const { rules, error } = authorizer.rulesFor(user, namespace);
  return {
    apiVersion: review.apiVersion,
    kind: review.kind,
    metadata: {},
    spec: {},
    status: {
      resourceRules: rules.filter(({ resources }) => resources.length > 0).map(resourceRule),
      nonResourceRules: rules
        .filter(({ nonResourceURLs }) => nonResourceURLs.length > 0)
        .map(({ verbs, nonResourceURLs }) => ({ verbs, nonResourceURLs })),
      incomplete: false,
      ...(error === '' ? {} : { evaluationError: error }),
    },
  };
}

function resourceRule({ verbs, apiGroups, resources, resourceNames }: PolicyRule): object {
  return {
    verbs,
    ...(apiGroups.length === 0 ? {} : { apiGroups }),
    resources,
    ...(resourceNames.length === 0 ? {} : { resourceNames }),
  };
}

function decided(review: KubernetesObject, spec: JsonObject, user: UserInfo, authorizer: Authorizer): KubernetesObject {
  const { allowed, reason } = authorizer.authorize(attributesOf(spec, user));
  const evaluationError = ignoredSelectors(spec);
  return {
    ...review,
    status: {
      allowed,
      ...(reason === '' ? {} : { reason }),
      ...(evaluationError === '' ? {} : { evaluationError }),
    },
  };
}

function attributesOf({ resourceAttributes, nonResourceAttributes }: JsonObject, user: UserInfo): AccessAttributes {
  if (isJsonObject(nonResourceAttributes)) {
    return { user, verb: textOf(nonResourceAttributes.verb), path: textOf(nonResourceAttributes.path) };
  }
  const { verb, group, version, resource, subresource, namespace, name } = isJsonObject(resourceAttributes)
    ? resourceAttributes
    : {};
  return {
    user,
    verb: textOf(verb),
    group: textOf(group),
    version: textOf(version) || '*',
    resource: textOf(resource),
    subresource: textOf(subresource),
    namespace: textOf(namespace),
    name: textOf(name),
  };
}

function subjectOf({ user, groups, uid, extra }: JsonObject): UserInfo {
  return {
    username: textOf(user),
    groups: textsOf(groups),
    uid: textOf(uid),
    extra: Object.fromEntries(
      Object.entries(isJsonObject(extra) ? extra : {}).map(([key, texts]) => [key, textsOf(texts)]),
    ),
  };
}

function specErrors(spec: JsonObject): FieldError[] {
  const errors = attributeErrors(spec);
  if (textOf(spec.user) === '' && textsOf(spec.groups).length === 0) {
    errors.push(invalid('spec.user', '', 'at least one of user or group must be specified'));
  }
  return [...errors, ...selectorErrors(spec)];
}

function attributeErrors({ resourceAttributes, nonResourceAttributes }: JsonObject): FieldError[] {
  const hasResource = isJsonObject(resourceAttributes);
  if (isJsonObject(nonResourceAttributes)) {
    const shown = printedAttributes(nonResourceAttributes);
    const detail = 'cannot be specified in combination with resourceAttributes';
    return hasResource ? [invalid('spec.nonResourceAttributes', shown, detail)] : [];
  }
  const detail = 'exactly one of nonResourceAttributes or resourceAttributes must be specified';
  return hasResource ? [] : [invalid('spec.resourceAttributes', null, detail)];
}

/** Non-resource attributes as messages of API servers show them. */
function printedAttributes({ path, verb }: JsonObject): object {
  return { Path: textOf(path), Verb: textOf(verb) };
}

const SELECTORS = ['fieldSelector', 'labelSelector'] as const;

function selectorErrors({ resourceAttributes }: JsonObject): FieldError[] {
  return SELECTORS.flatMap((key) => {
    const selector = isJsonObject(resourceAttributes) ? resourceAttributes[key] : undefined;
    if (!isJsonObject(selector)) {
      return [];
    }
    const field = `spec.resourceAttributes.${key}`;
    const raw = textOf(selector.rawSelector);
    const hasRequirements = Array.isArray(selector.requirements) && selector.requirements.length > 0;
    if (raw !== '' && hasRequirements) {
      return [invalid(`${field}.rawSelector`, raw, 'may not specified at the same time as requirements')];
    }
    const detail = `when ${field} is specified, requirements or rawSelector is required`;
    return raw === '' && !hasRequirements ? [required(`${field}.requirements`, detail)] : [];
  });
}

/** Describes malformed selectors. Well-formed ones have no effect, because RBAC does not use selectors. */
function ignoredSelectors({ resourceAttributes }: JsonObject): string {
  return SELECTORS.filter((key) => {
    const selector = isJsonObject(resourceAttributes) ? resourceAttributes[key] : undefined;
    return isJsonObject(selector) && !isParsable(key, selector);
  })
    .map((key) => `spec.resourceAttributes.${key} ignored due to parse error`)
    .join('; ');
}

function isParsable(key: (typeof SELECTORS)[number], { rawSelector, requirements }: JsonObject): boolean {
  const raw = textOf(rawSelector);
  try {
    if (key === 'fieldSelector') {
      parseFieldSelector(raw);
    } else if (raw === '') {
      labelSelector({ matchExpressions: requirements ?? [] });
    } else {
      parseLabelSelector(raw);
    }
    return true;
  } catch (error) {
    if (error instanceof SelectorError) {
      return false;
    }
    throw error;
  }
}

function metadataErrors({ metadata }: KubernetesObject, detail: string): FieldError[] {
  const given = Object.entries(metadata).filter(
    ([key, value]) => !SERVER_METADATA.has(key) && value !== undefined && value !== null && value !== '',
  );
  return given.length === 0 ? [] : [invalid('metadata', Object.fromEntries(given), detail)];
}

/** Throws 422 if there are errors. As in API servers, it names no kind. */
function refuse(errors: readonly FieldError[]): void {
  if (errors.length > 0) {
    throw ApiError.invalid({ group: GROUP, kind: '' }, '', errors);
  }
}

function specOf({ spec }: KubernetesObject): JsonObject {
  return isJsonObject(spec) ? spec : {};
}
