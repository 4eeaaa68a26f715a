export { POLICY_KINDS, PolicyControllers } from './policy-controllers.ts';
export type { PolicyControllersOptions } from './policy-controllers.ts';
export { FilePolicySet } from './policy-set.ts';
export type { PolicySet, ServedPolicy, WantedPolicy } from './policy-set.ts';
export type { WebhookTarget } from './webhook-configuration.ts';
