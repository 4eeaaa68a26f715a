import type { OwnKind } from '../kind-declarations/own-kind.ts';
import { CERTIFICATE_POLICIES } from './certificate-policy.ts';
import { CONFIGURATION_POLICIES } from './configuration-policy.ts';
import { POLICY_SETS } from './policy-set.ts';
import { POLICIES } from './policy.ts';

/** The kinds of Open Cluster Management that the governance controller reconciles. */
export const GOVERNANCE_KINDS: readonly OwnKind[] = [
  POLICIES,
  POLICY_SETS,
  CONFIGURATION_POLICIES,
  CERTIFICATE_POLICIES,
];
