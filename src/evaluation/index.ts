export { verdictOf } from './admission-response.ts';
export type { AdmissionResponse } from './admission-response.ts';
export { connectCapabilities } from './capabilities/capability-connection.ts';
export { LazyImages } from './capabilities/lazy-images.ts';
export type { ClusterSource } from './cluster-objects/cluster-source.ts';
export { applyExceptions } from './published-exceptions.ts';
export { EvaluationHost } from './host/evaluation-host.ts';
export type { HostedPolicy } from './host/evaluation-host.ts';
export { PolicyMemory } from './host/policy-memory.ts';
export { EvaluationError } from './errors.ts';
export type { ExistingObject, ReviewResult, ReviewRoute, TableChange, TableEntry } from './evaluation-protocol.ts';
export { CLUSTER_OWNER, memoryBudget } from './memory-budget.ts';
export type { CompiledPolicyModule } from './compiled-module.ts';
export type {
  DeclaredPolicy,
  LoadOutcome,
  LoadRequest,
  UnreadPolicy,
  ParameterTrial,
  ProvidedModule,
  ReadPolicy,
  RefusedNamespace,
  Stage,
} from './loading/load-request.ts';
export type { PeerAccess } from './loading/loader-lane.ts';
export { Loader } from './loading/loader.ts';
export type { PolicyReason } from './loading/policy-reason.ts';
export type { PoolAnswer, ObservedPolicy } from './pool/review-job.ts';
export { WatchedObjects } from './watched-objects.ts';
export type { FindResult, WatchedChange, WatchedObject } from './watched-objects.ts';
export { WorkerPool } from './pool/worker-pool.ts';
export type { RestartReason } from './pool/worker-pool.ts';
