export type { ClusterSource } from './cluster-source.ts';
export { ServerError } from './errors.ts';
export type { ServerErrorCode } from './errors.ts';
export { collectGarbageAlone } from './garbage-collection.ts';
export { createLog, LOG_LEVELS } from './log.ts';
export type { LogFormat, Logger, LogLevel, LogOptions } from './log.ts';
export { ensureLocalCertificates } from './local-certificates.ts';
export type { LocalCertificates } from './local-certificates.ts';
export { PolicyServer } from './policy-server.ts';
export type { Addresses, PolicyServerOptions } from './policy-server.ts';
export type { PolicyPhase, PolicyReason, PolicyStatus, PolicyVersion } from './policy-status.ts';
export type { PoliciesView } from './operations-endpoint.ts';
export { policyEntry } from './replica/policy-entry.ts';
export type { PolicyEntryOptions } from './replica/policy-entry.ts';
export type { ControlTls, ReplicaOptions } from './replica/replica-options.ts';
export { ALIVE_INTERVAL_MS, CONTROL_NAME, CONTROL_PROTOCOL, SILENCE_LIMIT_MS } from './replica/replica-protocol.ts';
export type {
  PinnedModule,
  PrevalidationRequest,
  PrevalidationResult,
  ReplicaMessage,
  ReplicaRevisionState,
  RevisionReport,
} from './replica/replica-protocol.ts';
