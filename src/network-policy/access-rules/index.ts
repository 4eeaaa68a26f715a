// An entry of its own for who grants rights and runs no controller.
export {
  NETWORK_POLICY_ANNOTATION_RULES,
  NETWORK_POLICY_READER_RULES,
  NETWORK_POLICY_REPORTER_RULES,
  NETWORK_POLICY_STATUS_RULES,
  NETWORK_POLICY_SUBRESOURCE_RULES,
} from './network-policy-rules.ts';
