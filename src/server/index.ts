export { createAdmissionServer } from './admission-server.ts';
export { createAuthority, issueCertificate } from './certificate-authority.ts';
export type { CertificateRequest, CertificateValidity, CertifiedKey } from './certificate-authority.ts';
export type { ClusterSource } from './cluster-source.ts';
export { RequestRefused, ServerError } from './errors.ts';
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
export { REPLICA_CLUSTER_RULES, REPLICA_POD_RULES, REPLICA_RULES } from './replica/replica-rules.ts';
export type { AccessRule } from './replica/replica-rules.ts';
export {
  ALIVE_INTERVAL_MS,
  CONTROL_NAME,
  CONTROL_PROTOCOL,
  MAX_MESSAGE_BYTES,
  MAX_REPORT_TEXT,
  SILENCE_LIMIT_MS,
} from './replica/replica-protocol.ts';
export type {
  PinnedModule,
  PrevalidationRequest,
  PrevalidationResult,
  ReplicaMessage,
  ReplicaRevisionState,
  RevisionReport,
} from './replica/replica-protocol.ts';
export { hostText, listen } from './listen.ts';
export { BodyBudget, readBody, sendError, sendJson } from './http-body.ts';

export { tlsOptions } from './tls.ts';
export type { TlsFiles } from './tls.ts';
