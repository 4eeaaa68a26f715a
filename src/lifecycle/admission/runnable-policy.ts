import { policyEntry } from '../../engine/definition/index.ts';
import { constantResult, fieldPathText, readPolicyDefinition } from '../../engine/index.ts';
import type { PolicyDefinition, PolicyFault } from '../../engine/index.ts';
import { type AdmissionPolicyObject, invalid, isGroupSpec, isJsonObject, policyId } from '../../resources/index.ts';
import type { Findings } from './findings.ts';
import type { RejectionCode } from './rule-codes.ts';

/** Fields of an entry of a policies file whose names differ in the specs of policies. */
const SPEC_FIELDS: ReadonlyMap<string, string> = new Map([
  ['policyMode', 'mode'],
  ['allowedToMutate', 'mutating'],
]);

/** Faults that other checks report in more detail. */
const CHECKED_ELSEWHERE: ReadonlySet<PolicyFault['code']> = new Set<PolicyFault['code']>(['invalid-id']);

/**
 * Reads the policy like a policy server does: the expression and members of a group, the depth and size of settings. Skips
 * fields that have an error already.
 */
export function checkRunnable(policy: AdmissionPolicyObject, findings: Findings): void {
  const { definition, faults = [] } = readPolicyDefinition(policyId(policy), policyEntry(policy));
  if (definition?.kind === 'group') {
    checkConstant(definition, findings);
  }
  for (const fault of faults) {
    const field = fieldOf(fault.path);
    if (CHECKED_ELSEWHERE.has(fault.code) || findings.has(field)) {
      continue;
    }
    const isMembers = isGroupSpec(policy.spec) && field === 'spec.policies';
    const value = valueAt(policy.spec, fault.path);
    findings.reject(codeOf(fault, isMembers), invalid(field, value, fault.message));
  }
}

/** A group that rejects every request can never work; one that rejects none may be on the way to become one. */
function checkConstant(
  { expression, members }: Extract<PolicyDefinition, { kind: 'group' }>,
  findings: Findings,
): void {
  const result = constantResult(expression, new Set(members.map(({ name }) => name)));
  if (result === false) {
    const detail = 'is false whatever the members say: every request would be rejected';
    findings.reject('group-expression', invalid('spec.expression', expression, detail));
  } else if (result === true) {
    findings.warn('group-expression', 'spec.expression', 'is true whatever the members say: the group rejects nothing');
  }
}

function codeOf({ code }: PolicyFault, isMembers: boolean): RejectionCode {
  if (code === 'invalid-expression') {
    return 'group-expression';
  }
  return isMembers || code === 'invalid-member-name' ? 'group-members' : 'not-runnable';
}

/** `spec.policies[name].settings.labels[0]` */
function fieldOf(path: PolicyFault['path']): string {
  const [first, second, ...rest] = path;
  if (first === 'policies' && second !== undefined) {
    return fieldPathText([`spec.policies[${second}]`, ...rest]);
  }
  return fieldPathText([
    'spec',
    ...path.map((step, index) => (index === 0 ? (SPEC_FIELDS.get(String(step)) ?? step) : step)),
  ]);
}

/** The string at a path. Empty for other values: settings may contain secrets, which messages must not quote. */
function valueAt(spec: unknown, path: PolicyFault['path']): string {
  let value = spec;
  for (const part of path) {
    value = isJsonObject(value) && Object.hasOwn(value, part) ? value[part] : undefined;
  }
  return typeof value === 'string' ? value : '';
}
