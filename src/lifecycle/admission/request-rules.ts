// Validates the rules of policies like API servers those of webhooks (k8s.io/kubernetes 1.34,
// pkg/apis/admissionregistration/validation), beyond our schema.
import { nearestKey } from '../../values/index.ts';
import type { AdmissionPolicySpec } from '../../resources/index.ts';
import {
  builtinKinds,
  forbidden,
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
  warnOfMistakes(rule, path, findings);
  warnOfUnknown(rule, path, findings);
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

/** Warns of rules that API servers accept and that match no request: a kind as resource, a group as version. */
function warnOfMistakes({ apiGroups = [], apiVersions, resources }: Rule, path: string, findings: Findings): void {
  for (const [index, text] of resources.entries()) {
    if (/[A-Z]/.test(text)) {
      const detail = `"${text}" is no resource: write it in lower case and in the plural, such as "pods"`;
      findings.warn('rule-never-matches', `${path}.resources[${index}]`, detail);
    }
  }
  for (const [index, text] of apiVersions.entries()) {
    if (text.includes('/')) {
      const detail = `"${text}" is no version: expected "${text.slice(text.indexOf('/') + 1)}" here, and the group in apiGroups`;
      findings.warn('rule-never-matches', `${path}.apiVersions[${index}]`, detail);
    }
  }
  for (const [index, text] of apiGroups.entries()) {
    if (/^v[0-9]+((alpha|beta)[0-9]+)?$/.test(text) || text.includes('/')) {
      const detail = `"${text}" is no API group: expected "" for the core group, or a name such as "apps" without a version`;
      findings.warn('rule-never-matches', `${path}.apiGroups[${index}]`, detail);
    }
  }
}

/**
 * Warns of the first resource that no group of the rule has, where all are known: groups without a dot have no custom resources.
 */
function warnOfUnknown({ apiGroups = [], resources }: Rule, path: string, findings: Findings): void {
  const kinds = apiGroups.map((group) => (group.includes('.') ? [] : builtinKinds(group)));
  if (kinds.length === 0 || kinds.some((ofGroup) => ofGroup.length === 0)) {
    return;
  }
  const known = kinds.flat().map(({ resource }) => resource);
  const names = resources.map((text) => text.split('/', 1)[0] ?? '');
  const index = names.findIndex((name) => /^[^A-Z*]+$/.test(name) && !known.includes(name));
  const name = names[index];
  if (name !== undefined) {
    const nearest = nearestKey(name, known);
    const hint = nearest === undefined ? '' : `. Did you mean ${nearest}?`;
    const groups = apiGroups.map((group) => `"${group}"`).join(', ');
    const detail = `Kubernetes has no resource "${name}" in apiGroups ${groups}${hint}`;
    findings.warn('rule-never-matches', `${path}.resources[${index}]`, detail);
  }
}

function meansEverything({ apiGroups = [], resources }: Rule): boolean {
  return apiGroups.includes(WILDCARD) && (resources.includes(WILDCARD) || resources.includes(ALL_SUBRESOURCES));
}
