export { controlledCluster, type ControlledCluster } from './controlled-cluster.ts';
export { pause, SYSTEM_CLOCK } from './clock.ts';
export type { Clock } from './clock.ts';
export { Controller } from './controller.ts';
export { EventRecorder, EVENTS } from './event-recorder.ts';
export type { EventSink } from './event-recorder.ts';
export { LeaderElector, LEASES } from './leader-elector.ts';
export type { Lease, LeaseSpec } from './leader-elector.ts';
export { RuntimeMetrics } from './metrics.ts';
export { ObjectCache } from './object-cache.ts';
export { ObjectIndex } from './object-index.ts';
export { ObjectStore } from './object-store.ts';
export type { Change, CachedObjects } from './object-store.ts';
export {
  FAILED_REASON,
  errorKind,
  type ErrorKind,
  outcomeOfError,
  ReconcileError,
  FIRST_REPORTED_FAILURE,
  Stalled,
  Waiting,
  worstFailure,
} from './reconcile-outcome.ts';
export type { ReconcileResult } from './reconcile-outcome.ts';
export { runSteps, withStatus } from './reconcile-steps.ts';
export type { LastStep, ReconcileAttempt, ReconcileStep } from './reconcile-steps.ts';
export { CONTESTED_REASON, withWriteBackoff } from './write-backoff.ts';
export { aborted } from './runnable.ts';
export type { Runnable } from './runnable.ts';
export { Runtime } from './runtime.ts';
export { SharedCaches } from './shared-caches.ts';
export { withinTime } from './time-limit.ts';
export { TokenBucket, type TokenBucketOptions } from './token-bucket.ts';
export { annotationsChanged, anyOf, generationChanged, watch } from './watch.ts';
export type { Predicate, Watch } from './watch.ts';
export { LOW_PRIORITY } from './work-queue.ts';
export { WrittenObjects } from './written-objects.ts';
