export type { PolicyManifests } from './policies/file-policies.ts';
export { PolicyServer } from './policy-server.ts';
export type { Addresses, PolicyServerOptions } from './policy-server.ts';
export type { PolicyPhase, PolicyStatus } from './status/policy-status.ts';

export type { ReplicaOptions } from './replica/replica-options.ts';
