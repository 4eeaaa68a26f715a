// Which requests a policy is asked about: what API servers ask of the rules of webhooks (k8s.io/kubernetes 1.34,
// pkg/apis/admissionregistration/validation), where our schema says less.
import type { AdmissionPolicySpec } from '../../resources/index.ts';
import { invalid, PORTCULLIS_GROUP, required } from '../../resources/index.ts';
import type { Findings } from './findings.ts';

type Rule = AdmissionPolicySpec['rules'][number];

const WILDCARD = '*';
const ALL_SUBRESOURCES = '*/*';

/** The rules of a policy at `spec.rules`. */
export function checkRequestRules(rules: readonly Rule[], findings: Findings): void {
  for (const [index, rule] of rules.entries()) {
    checkRule(rule, `spec.rules[${index}]`, findings);
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
  warnOfUnasked(rule, path, findings);
  if (meansEverything(rule)) {
    const text =
      'the policy is asked about every kind of object: a request of any user may wait for it, and fails with it';
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

/** Resources that others of the list hold already. In the order of the list, as API servers look at them. */
function checkOverlaps(resources: readonly string[], field: string, findings: Findings): void {
  const overlap = (at: string, value: unknown, wide: string, narrow: string): void => {
    const detail = `"${wide}" holds ${narrow} already: remove one of them`;
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
  // API servers look at the last one only: `["*", "pods"]` is refused, `["pods", "*"]` is not.
  if (resources.includes(WILDCARD) && last !== WILDCARD && last !== '') {
    overlap(field, resources, WILDCARD, `"${last}", as all resources without a subresource`);
  }
}

/** Kinds that API servers ask nobody about: else no webhook that rejects everything could be removed. */
const UNASKED_GROUP = 'admissionregistration.k8s.io';
const UNASKED: ReadonlySet<string> = new Set([
  'validatingwebhookconfigurations',
  'mutatingwebhookconfigurations',
  'validatingadmissionpolicies',
  'validatingadmissionpolicybindings',
  'mutatingadmissionpolicies',
  'mutatingadmissionpolicybindings',
]);

/** What is named and yet never asked about. Whoever says `*` need not mean it. */
function warnOfUnasked({ apiGroups = [], resources }: Rule, path: string, findings: Findings): void {
  for (const [index, text] of resources.entries()) {
    if (apiGroups.includes(UNASKED_GROUP) && UNASKED.has(text.split('/', 1)[0] ?? '')) {
      const detail = `API servers ask no webhook about ${text}, so that one that rejects everything can be removed: the policy never sees them. Who may write them is for RBAC to say`;
      findings.warn('rule-never-matches', `${path}.resources[${index}]`, detail);
    }
  }
  for (const [index, group] of apiGroups.entries()) {
    if (group === PORTCULLIS_GROUP) {
      const detail = `no policy is asked about objects of ${PORTCULLIS_GROUP}, which only the product writes: who may write them is for RBAC to say`;
      findings.warn('rule-never-matches', `${path}.apiGroups[${index}]`, detail);
    }
  }
}

/** What API servers take and no request will ever be: a kind for a resource, a group in a version. */
function warnOfMistakes({ apiGroups = [], apiVersions, resources }: Rule, path: string, findings: Findings): void {
  for (const [index, text] of resources.entries()) {
    if (/[A-Z]/.test(text)) {
      const detail = `"${text}" is no resource: they are written in lower case and in the plural, as "pods"`;
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

function meansEverything({ apiGroups = [], resources }: Rule): boolean {
  return apiGroups.includes(WILDCARD) && (resources.includes(WILDCARD) || resources.includes(ALL_SUBRESOURCES));
}
