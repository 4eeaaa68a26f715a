// What the product may do in the whole cluster: installations grant it, and no webhook may keep it from that.
import type { AccessRule } from '../resources/index.ts';
import { OWN_KINDS_RULES } from './admission/own-kinds-registration.ts';
import { CONTROLLER_RULES, SELF_REVIEW_RULES } from './controller-rules.ts';
import { ACCESS_REVIEW_RULES } from './policy-servers/context-aware-rules.ts';
import { POLICY_SERVER_RULES } from './policy-servers/policy-server-rules.ts';

/** Rights that an installation grants. */
export const CLUSTER_RULES: readonly AccessRule[] = [...CONTROLLER_RULES, ...OWN_KINDS_RULES, ...POLICY_SERVER_RULES];

/** Rights that the product uses where it has them, and that no installation grants by itself: verdicts that it asks for. */
export const REVIEW_RULES: readonly AccessRule[] = [...SELF_REVIEW_RULES, ...ACCESS_REVIEW_RULES];
