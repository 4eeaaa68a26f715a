// Warns of policies that may keep a namespace Terminating by their own verdict.
import { type AdmissionPolicyObject, type AdmissionPolicySpec, builtinKinds } from '../../resources/index.ts';
import type { Findings } from './findings.ts';

type Rule = AdmissionPolicySpec['rules'][number];

/** Words of a policy that has thought of objects which are being deleted. */
const AWARE = /deletionTimestamp|finalizers|namespace-controller/;

/**
 * Warns of rules for deletions, and of rules for updates alone, which judge a change: neither the namespace controller may delete
 * what the policy denies, nor any controller remove a finalizer. Rules for creation, too, judge what was admitted before.
 */
export function checkDeletions({ metadata, spec }: AdmissionPolicyObject, findings: Findings): void {
  if (spec.mode === 'monitor' || AWARE.test(JSON.stringify(spec))) {
    return;
  }
  for (const [index, rule] of spec.rules.entries()) {
    const field = `spec.rules[${index}].operations`;
    // Policies of a namespace never judge the namespace controller.
    const judgesDeletion = metadata.namespace === undefined && matches(rule, 'DELETE');
    if (isOfNamespaces(rule) && (judgesDeletion || judgesUpdatesAlone(rule))) {
      findings.warn('keeps-namespace', field, judgesDeletion ? DELETION : UPDATE);
    }
  }
}

const DELETION =
  'while the policy denies the deletion of an object, its namespace cannot be deleted either. To let it: matchConditions: [{name: not-cleanup, expression: "request.userInfo.username != \'system:serviceaccount:kube-system:namespace-controller\'"}]';
const UPDATE =
  'while the policy denies the update that removes the last finalizer of an object, neither it nor its namespace can be deleted. To let them: matchConditions: [{name: not-ending, expression: "!has(object.metadata.deletionTimestamp)"}]';

function judgesUpdatesAlone(rule: Rule): boolean {
  return matches(rule, 'UPDATE') && !matches(rule, 'CREATE');
}

function matches({ operations }: Rule, operation: Rule['operations'][number]): boolean {
  return operations.includes(operation) || operations.includes('*');
}

/** Whether a rule may match objects in namespaces, and no subresources alone. */
function isOfNamespaces({ apiGroups = [], resources }: Rule): boolean {
  const clusterScoped = apiGroups.flatMap((group) =>
    builtinKinds(group).flatMap(({ resource, namespaced }) => (namespaced ? [] : [resource])),
  );
  return resources.some((one) => !clusterScoped.includes(one) && (!one.includes('/') || one.startsWith('*/')));
}
