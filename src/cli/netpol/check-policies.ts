import {
  analysePolicy,
  type ClusterFacts,
  judgePolicy,
  type NetworkPolicy,
  type ProviderSupport,
  type ProviderVerdict,
} from '../../engine/network-policy/index.ts';

/** What the providers do with a policy. */
export interface CheckResult {
  /** `namespace/name` */
  readonly policy: string;
  readonly source: NetworkPolicy;
  readonly verdicts: readonly ProviderVerdict[];
}

/** @param withFeatures whether verdicts list features, which take most of the memory of many policies */
export function checkPolicies(
  policies: readonly NetworkPolicy[],
  providers: readonly ProviderSupport[],
  withFeatures: boolean,
  facts?: ClusterFacts,
): readonly CheckResult[] {
  return policies.map((policy) => {
    const analysed = analysePolicy(policy, facts);
    const verdicts = providers.map((support) => {
      const verdict = judgePolicy(analysed, support);
      return withFeatures ? verdict : { ...verdict, features: [] };
    });
    return { policy: `${policy.namespace}/${policy.name}`, source: policy, verdicts };
  });
}
