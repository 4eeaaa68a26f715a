// What API servers refuse in objects of Kubernetes' kinds although their types are right, and what they warn of, in their words.
// Not exported by resources/index.ts, so that it is loaded only where it is used.
export { amountOf, CheckedValue, configKeyProblems, percentOrNumber, portNameProblems } from './checked-value.ts';
export { hasHostBits, readCidr } from './cidr-text.ts';
export { addressWarnings, cidrWarnings } from './cidr-warnings.ts';
export { checkNetworkPolicy } from './network-policy-validation.ts';
export { networkPolicyWarnings } from './network-policy-warnings.ts';
