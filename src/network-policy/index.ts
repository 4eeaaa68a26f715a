export { NetworkPolicyControllers } from './network-policy-controllers.ts';
export type { NetworkPolicyOptions } from './network-policy-controllers.ts';
export { NETWORK_POLICY_READER_RULES, NETWORK_POLICY_STATUS_RULES } from './network-policy-rules.ts';
export { StatusRemoval } from './status-removal.ts';
