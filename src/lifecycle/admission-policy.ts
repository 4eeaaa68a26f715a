// What controllers read of an admission policy, whichever of its four kinds it has.
import type {
  AdmissionPolicy,
  AdmissionPolicyGroup,
  ClusterAdmissionPolicy,
  ClusterAdmissionPolicyGroup,
  KubernetesObject,
} from '../resources/index.ts';

/** An admission policy of any kind. */
export type AdmissionPolicyObject =
  | ClusterAdmissionPolicy
  | AdmissionPolicy
  | ClusterAdmissionPolicyGroup
  | AdmissionPolicyGroup;

type GroupSpec = (ClusterAdmissionPolicyGroup | AdmissionPolicyGroup)['spec'];

export function isGroup(spec: AdmissionPolicyObject['spec']): spec is GroupSpec {
  return 'policies' in spec;
}

/** What ids begin with, by kind. Upstream's names since 1.37; earlier ones could collide (GHSA-m5vp-9g65-pv6v). */
const PREFIXES: Readonly<Record<string, string>> = {
  ClusterAdmissionPolicy: 'kw.cap',
  AdmissionPolicy: 'kw.ap',
  ClusterAdmissionPolicyGroup: 'kw.capg',
  AdmissionPolicyGroup: 'kw.apg',
};

/**
 * The id of a policy: its entry in the policies file, its path on the policy server, and the name of its webhook
 * configuration. A namespace has no dots, so no two policies share one.
 */
export function policyId({ kind, metadata }: Pick<KubernetesObject, 'kind' | 'metadata'>): string {
  const { namespace, name = '' } = metadata;
  return [PREFIXES[kind], ...(namespace === undefined ? [] : [namespace]), name].join('.');
}
