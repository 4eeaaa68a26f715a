// The status of a PolicySet by those of its Policies, in the words of Open Cluster Management.
import { compareStrings } from '../../../go/index.ts';
import { type ComplianceState, type Policy, type PolicySet, setReadiness } from '../../../resources/index.ts';
import { listed } from '../../../values/index.ts';
import { POLICY_REASONS } from '../../policy/policy-reasons.ts';

export type PolicySetStatus = NonNullable<PolicySet['status']>;

/** Policies that a part of the message names: with all four parts, it fits into a condition, which has 32,768 characters. */
const MAX_NAMED = 20;

/**
 * The status of a PolicySet.
 * @param policyOf the Policy of a name in the namespace of the set
 */
export function policySetStatus(
  set: PolicySet,
  policyOf: (name: string) => Policy | undefined,
  now: number,
): PolicySetStatus {
  const names = [...new Set(set.spec.policies)].toSorted(compareStrings);
  const members = names.map((name) => ({ name, policy: policyOf(name) }));
  const enabled = members.flatMap(({ name, policy }) =>
    policy === undefined || policy.spec.disabled ? [] : [{ name, compliant: policy.status?.compliant }],
  );
  const missing = members.filter(({ policy }) => policy === undefined);
  const named = (list: readonly { readonly name: string }[]): string =>
    listed(
      list.map(({ name }) => name),
      MAX_NAMED,
    );
  const parts: readonly (readonly [string, readonly { readonly name: string }[]])[] = [
    ['Policies awaiting pending dependencies', enabled.filter(({ compliant }) => compliant === 'Pending')],
    ['Disabled policies', members.filter(({ policy }) => policy?.spec.disabled === true)],
    ['No status provided while awaiting policy status', enabled.filter(({ compliant }) => compliant === undefined)],
    ['Deleted policies', missing],
  ];
  const texts = parts.filter(([, list]) => list.length > 0).map(([text, list]) => `${text}: ${named(list)}`);
  const statusMessage = texts.length === 0 ? 'All policies are reporting status' : texts.join('; ');
  const known = complianceOf(enabled.map((member) => member.compliant));
  // Nothing is known of what does not exist, besides that it cannot make the set better.
  const compliant = known === 'Compliant' && missing.length > 0 ? undefined : known;
  const generation = set.metadata.generation ?? 0;
  const reason = missing.length === 0 ? POLICY_REASONS.evaluated : POLICY_REASONS.policyNotFound;
  const readiness = { state: 'ready', reason, message: statusMessage } as const;
  return {
    ...(compliant === undefined ? {} : { compliant }),
    statusMessage,
    conditions: setReadiness(set.status?.conditions, readiness, generation, now),
    observedGeneration: generation,
  };
}

/** NonCompliant, then Pending, then Compliant; undefined while the state of a Policy is not known, or there is none. */
function complianceOf(states: readonly (ComplianceState | undefined)[]): ComplianceState | undefined {
  return states.length === 0 || states.includes(undefined)
    ? undefined
    : ((['NonCompliant', 'Pending'] as const).find((state) => states.includes(state)) ?? 'Compliant');
}
