// An entry of its own for who grants rights, to accounts by their names, and runs no controller.
export {
  POLICY_SERVER_CLUSTER_ROLE_PREFIX,
  POLICY_SERVER_PREFIX,
  policyServerObjectName,
} from '../certificates/policy-server-names.ts';
export {
  CERTIFICATE_NAMESPACE_RULES,
  EXTERNAL_CERTIFICATE_NAMESPACE_RULES,
} from '../certificates/certificate-rules.ts';
export { ACCESS_REVIEW_RULES } from '../policy-servers/context-aware-rules.ts';
export { CONTEXT_AWARE_RULES, POLICY_SERVER_NAMESPACE_RULES } from '../policy-servers/policy-server-rules.ts';
export { EXCEPTION_GUARD, EXCEPTION_RULES, EXCEPTION_STATUS_GUARD } from './exception-rules.ts';
export { CLUSTER_RULES } from './cluster-rules.ts';
export { CONTROLLER_NAMESPACE_RULES, CONTROLLER_RULES } from './controller-rules.ts';
export { OWN_KINDS_RULES } from './own-kinds-rules.ts';
