export type { PolicyManifests } from './policies/file-policies.ts';
export { MAX_RECORDED_REQUESTS } from './recording/request-recorder.ts';
export { PolicyServer } from './policy-server.ts';
export type { Addresses, PolicyServerOptions } from './policy-server.ts';
export type { ServedPolicyPhase, ServedPolicyStatus } from './status/served-policy-status.ts';

export type { ClusterPoliciesOptions } from './replica/cluster-policies-options.ts';
