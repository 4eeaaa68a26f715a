export { ControlClient, parseControlAddress } from './control-client.ts';
export type { ControlAddress } from './control-client.ts';
export { ControlEndpoint } from './control-endpoint.ts';
export type { ControlEndpointOptions } from './control-endpoint.ts';
export { CONTROLLER_CONTROL_NAME, policyServerControlName, policyServersOf } from './control-names.ts';
export { CopiesEndpoint } from './copies-endpoint.ts';
export type { CopySource, SentCopy } from './copies-endpoint.ts';
export { COPIES_WAIT_MS, MAX_COPIES_BYTES, parseCopiesReport } from './copies-report.ts';
export type { CopiesReport } from './copies-report.ts';
export type { ControlTls } from './control-tls.ts';
export {
  ALIVE_INTERVAL_MS,
  CONTROL_NAME,
  CONTROL_PROTOCOL,
  INVALID_PARAMETERS,
  MAX_REFUSED_NAMESPACES,
  SILENCE_LIMIT_MS,
} from './replica-protocol.ts';
export { movedModules } from './moved-modules.ts';
export { revisionCause, shortDigest } from './revision-cause.ts';
export type { RevisionContent } from './revision-cause.ts';
export { pinnedSpec } from './pinned-spec.ts';
export { previousRevision, secondRollbackNote } from './rollback-target.ts';
export type { RollbackCandidate } from './rollback-target.ts';
export type {
  ExceptionUse,
  MonitoredReport,
  PinnedModule,
  PrevalidationRequest,
  PrevalidationResult,
  ReplicaAnswers,
  ReplicaMessage,
  ReplicaRevisionState,
  RefusedReport,
  RevisionReport,
} from './replica-protocol.ts';
export { MAX_LINE_BYTES, replicaMessages } from './replica-stream.ts';
export type { ReportSource } from './report-source.ts';
export type { UseSource } from './use-source.ts';
export { refusedText } from './refused-text.ts';
export { PREVALIDATION_TIMEOUT_MS, prevalidateOn } from './prevalidation-result.ts';
