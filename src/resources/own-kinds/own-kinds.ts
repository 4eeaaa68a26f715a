import {
  ADMISSION_POLICIES,
  ADMISSION_POLICY_GROUPS,
  CLUSTER_ADMISSION_POLICIES,
  CLUSTER_ADMISSION_POLICY_GROUPS,
} from '../policies/admission-policies.ts';
import { CONTROLLER_REPLICAS } from '../policies/controller-replica.ts';
import { GOVERNANCE_KINDS } from '../governance/governance-kinds.ts';
import { NETWORK_POLICY_PROVIDERS } from '../network-policy/network-policy-provider.ts';
import { NETWORK_POLICY_STATUSES } from '../network-policy/network-policy-status.ts';
import { apiVersionOf } from '../resource-type.ts';
import type { OwnKind } from '../kind-declarations/own-kind.ts';
import type { AdmissionPolicyObject } from '../policies/policy-names.ts';
import { POLICY_EXCEPTIONS } from '../policies/policy-exception.ts';
import { POLICY_REVISIONS } from '../policies/policy-revision.ts';
import { POLICY_SERVER_REPLICAS } from '../policies/policy-server-replica.ts';
import { POLICY_SERVERS } from '../policies/policy-server.ts';

/** The kinds of admission policies. */
export const POLICY_KINDS: readonly OwnKind<AdmissionPolicyObject>[] = [
  CLUSTER_ADMISSION_POLICIES,
  ADMISSION_POLICIES,
  CLUSTER_ADMISSION_POLICY_GROUPS,
  ADMISSION_POLICY_GROUPS,
];

/** The kinds of admission control: policies, their PolicyServers, and their records. */
export const OWN_KINDS: readonly OwnKind[] = [
  ...POLICY_KINDS,
  POLICY_SERVERS,
  POLICY_EXCEPTIONS,
  POLICY_REVISIONS,
  POLICY_SERVER_REPLICAS,
  CONTROLLER_REPLICAS,
];

/** The kinds about NetworkPolicies. */
export const NETWORK_POLICY_KINDS: readonly OwnKind[] = [NETWORK_POLICY_STATUSES, NETWORK_POLICY_PROVIDERS];

/** All kinds of the product. */
export const ALL_KINDS: readonly OwnKind[] = [...OWN_KINDS, ...GOVERNANCE_KINDS, ...NETWORK_POLICY_KINDS];

/** The kind of the product with that name and version, if any. */
export function productKind(apiVersion: string, kind: string): OwnKind | undefined {
  return ALL_KINDS.find((one) => one.kind === kind && apiVersionOf(one) === apiVersion);
}
