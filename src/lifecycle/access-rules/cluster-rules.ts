// Cluster-wide access rules of the product. Installations grant them, and webhooks exempt the requests that they permit.
import type { AccessRule } from '../../resources/index.ts';
import { OWN_KINDS_RULES } from './own-kinds-rules.ts';
import { EXCEPTION_RULES } from './exception-rules.ts';
import { CONTROLLER_RULES, SELF_REVIEW_RULES } from './controller-rules.ts';
import { ACCESS_REVIEW_RULES } from '../policy-servers/context-aware-rules.ts';
import { POLICY_SERVER_RULES } from '../policy-servers/policy-server-rules.ts';

/** Rights that an installation grants. */
export const CLUSTER_RULES: readonly AccessRule[] = [
  ...CONTROLLER_RULES,
  ...EXCEPTION_RULES,
  ...OWN_KINDS_RULES,
  ...POLICY_SERVER_RULES,
];

/** Reviews of access and identity, which the product creates where permitted. Installations do not grant them. */
export const REVIEW_RULES: readonly AccessRule[] = [...SELF_REVIEW_RULES, ...ACCESS_REVIEW_RULES];
