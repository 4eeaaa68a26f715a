import {
  ADMISSION_POLICIES,
  ADMISSION_POLICY_GROUPS,
  CLUSTER_ADMISSION_POLICIES,
  CLUSTER_ADMISSION_POLICY_GROUPS,
} from './admission-policies.ts';
import type { OwnKind } from './own-kind.ts';
import { POLICY_REVISIONS } from './policy-revision.ts';
import { POLICY_SERVER_REPLICAS } from './policy-server-replica.ts';
import { POLICY_SERVERS } from './policy-server.ts';

/** All kinds of the product. */
export const OWN_KINDS: readonly OwnKind[] = [
  CLUSTER_ADMISSION_POLICIES,
  ADMISSION_POLICIES,
  CLUSTER_ADMISSION_POLICY_GROUPS,
  ADMISSION_POLICY_GROUPS,
  POLICY_SERVERS,
  POLICY_REVISIONS,
  POLICY_SERVER_REPLICAS,
];
