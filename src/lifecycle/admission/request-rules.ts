// Validates the rules of policies like API servers those of webhooks (k8s.io/kubernetes 1.34,
// pkg/apis/admissionregistration/validation), beyond our schema.
import type { AdmissionPolicySpec } from '../../resources/index.ts';
import {
  forbidden,
  impossibleRules,
  invalid,
  PORTCULLIS_GROUP,
  privilegedNames,
  required,
} from '../../resources/index.ts';
import type { Findings } from './findings.ts';

type Rule = AdmissionPolicySpec['rules'][number];

const WILDCARD = '*';
const ALL_SUBRESOURCES = '*/*';

/** Checks `spec.rules`. */
export function checkRequestRules(rules: readonly Rule[], isNamespaced: boolean, findings: Findings): void {
  for (const [index, rule] of rules.entries()) {
    const path = `spec.rules[${index}]`;
    checkRule(rule, path, findings);
    if (isNamespaced) {
      rejectPrivileged(rule, path, findings);
    } else {
      warnOfExempt(rule, path, findings);
    }
  }
  for (const { field, message } of impossibleRules(rules).filter((one) => !findings.has(one.field))) {
    findings.warn('rule-never-matches', field, message);
  }
}

function checkRule(rule: Rule, path: string, findings: Findings): void {
  const { apiGroups = [], apiVersions, resources, operations } = rule;
  if (apiGroups.length === 0) {
    const detail =
      'name the API groups of the resources: "" is the core group, with pods and services; "apps" has deployments';
    findings.reject('rule-groups', required(`${path}.apiGroups`, detail));
  }
  checkWildcard(apiGroups, `${path}.apiGroups`, 'groups', findings);
  checkWildcard(apiVersions, `${path}.apiVersions`, 'versions', findings);
  checkWildcard(operations, `${path}.operations`, 'operations', findings);
  checkTexts(apiVersions, `${path}.apiVersions`, 'v1', findings);
  checkTexts(resources, `${path}.resources`, 'pods', findings);
  checkOverlaps(resources, `${path}.resources`, findings);
  if (meansEverything(rule)) {
    const text = 'the policy matches every kind of object: requests of all users wait for it, and fail if it fails';
    findings.warn('rules-everything', path, text);
  }
}

function checkWildcard(list: readonly string[], field: string, what: string, findings: Findings): void {
  if (list.length > 1 && list.includes(WILDCARD)) {
    const detail = `"*" stands for all ${what}: expected it alone, got ${list.length} entries. Remove "*", or all others`;
    findings.reject('rule-wildcard', invalid(field, list, detail));
  }
}

function checkTexts(list: readonly string[], field: string, example: string, findings: Findings): void {
  for (const [index, text] of list.entries()) {
    if (text === '') {
      findings.reject('rule-empty', required(`${field}[${index}]`, `expected a name such as "${example}", got ""`));
    }
  }
}

/** Rejects resources that other entries include, in the order in which API servers check them. */
function checkOverlaps(resources: readonly string[], field: string, findings: Findings): void {
  const overlap = (at: string, value: unknown, wide: string, narrow: string): void => {
    const detail = `"${wide}" includes ${narrow}: remove one of them`;
    findings.reject('rule-overlap', invalid(at, value, detail));
  };
  const whole = new Set<string>();
  const everywhere = new Set<string>();
  let last = '';
  for (const [index, text] of resources.entries()) {
    const slash = text.indexOf('/');
    if (slash === -1) {
      last = text === '' ? last : text;
      continue;
    }
    const [resource, subresource] = [text.slice(0, slash), text.slice(slash + 1)];
    if (whole.has(resource)) {
      overlap(`${field}[${index}]`, text, `${resource}/*`, `"${text}"`);
    }
    if (everywhere.has(subresource)) {
      overlap(`${field}[${index}]`, text, `*/${subresource}`, `"${text}"`);
    }
    if (subresource === WILDCARD) {
      whole.add(resource);
    }
    if (resource === WILDCARD) {
      everywhere.add(subresource);
    }
  }
  if (resources.length > 1 && resources.includes(ALL_SUBRESOURCES)) {
    overlap(field, resources, ALL_SUBRESOURCES, 'every resource and subresource');
  }
  // API servers check the last entry only: they refuse `["*", "pods"]`, but not `["pods", "*"]`.
  if (resources.includes(WILDCARD) && last !== WILDCARD && last !== '') {
    overlap(field, resources, WILDCARD, `"${last}", as all resources without a subresource`);
  }
}

/** Rejects names of privileged kinds, of which no policy of a namespace sees a request; `*` may be meant for others. */
function rejectPrivileged(rule: Rule, path: string, findings: Findings): void {
  for (const { field, name } of privilegedNames(rule)) {
    const detail = `policies of a namespace never see requests for ${name}: a policy that changes or rejects these could give its author the rights of others. Remove it, or ask an administrator for a ClusterAdmissionPolicy with a namespaceSelector`;
    findings.reject('rule-privileged', forbidden(`${path}.${field}`, detail));
  }
}

/** Resources for which API servers call no webhooks, so that a webhook that rejects everything can be removed. */
const EXEMPT_GROUP = 'admissionregistration.k8s.io';
const EXEMPT_RESOURCES: ReadonlySet<string> = new Set([
  'validatingwebhookconfigurations',
  'mutatingwebhookconfigurations',
  'validatingadmissionpolicies',
  'validatingadmissionpolicybindings',
  'mutatingadmissionpolicies',
  'mutatingadmissionpolicybindings',
]);

/** Warns of rules that name exempt objects; `*` may be meant for others. */
function warnOfExempt({ apiGroups = [], resources }: Rule, path: string, findings: Findings): void {
  for (const [index, text] of resources.entries()) {
    if (apiGroups.includes(EXEMPT_GROUP) && EXEMPT_RESOURCES.has(text.split('/', 1)[0] ?? '')) {
      const detail = `API servers call no webhooks for ${text}, so that a webhook that rejects everything can be removed. Control access to them with RBAC`;
      findings.warn('rule-never-matches', `${path}.resources[${index}]`, detail);
    }
  }
  for (const [index, group] of apiGroups.entries()) {
    if (group === PORTCULLIS_GROUP) {
      const detail = `policies never see objects of ${PORTCULLIS_GROUP}, which only Portcullis writes. Control access to them with RBAC`;
      findings.warn('rule-never-matches', `${path}.apiGroups[${index}]`, detail);
    }
  }
}

function meansEverything({ apiGroups = [], resources }: Rule): boolean {
  return apiGroups.includes(WILDCARD) && (resources.includes(WILDCARD) || resources.includes(ALL_SUBRESOURCES));
}
