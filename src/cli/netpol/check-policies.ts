import {
  analysePolicy,
  type ClusterFacts,
  judgePolicy,
  mistakesOf,
  type NetworkPolicyFinding,
  type ProviderSupport,
  type ProviderVerdict,
  unsupportedFeatures,
} from '../../engine/network-policy/index.ts';
import type { InputPolicy } from './policy-flags.ts';

/** What API servers and the providers do with a policy. */
export interface CheckResult extends Pick<InputPolicy, 'refusals' | 'placeOf'> {
  /** `namespace/name` */
  readonly policy: string;
  /** Mistakes in it, whatever the provider. */
  readonly mistakes: readonly NetworkPolicyFinding[];
  /** Empty for a policy that API servers refuse. */
  readonly verdicts: readonly CheckVerdict[];
}

export interface CheckVerdict extends ProviderVerdict {
  /** Where the policy uses what is not supported. */
  readonly path?: string;
}

/** @param withFeatures whether verdicts list features, which take most of the memory of many policies */
export function checkPolicies(
  policies: readonly InputPolicy[],
  providers: readonly ProviderSupport[],
  facts: ClusterFacts,
  withFeatures: boolean,
): readonly CheckResult[] {
  return policies.map(({ policy, ...read }) => {
    const analysed = analysePolicy(policy, facts);
    const verdicts = providers.map((support) => withPath(judgePolicy(analysed, support), withFeatures));
    const isRefused = read.refusals.length > 0;
    return {
      ...read,
      policy: `${policy.namespace}/${policy.name}`,
      mistakes: isRefused ? [] : mistakesOf(policy),
      verdicts: isRefused ? [] : verdicts,
    };
  });
}

function withPath(verdict: ProviderVerdict, withFeatures: boolean): CheckVerdict {
  const path = unsupportedFeatures(verdict.features)[0]?.paths[0];
  return { ...verdict, ...(path === undefined ? {} : { path }), ...(withFeatures ? {} : { features: [] }) };
}
