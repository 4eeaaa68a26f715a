export { pause, SYSTEM_CLOCK } from './clock.ts';
export type { Clock } from './clock.ts';
export { Controller, DEFAULT_RECONCILE_TIMEOUT_MS } from './controller.ts';
export type { ControllerOptions, Reconciler } from './controller.ts';
export { RuntimeError } from './errors.ts';
export type { RuntimeErrorCode } from './errors.ts';
export type { EventType } from './event-correlator.ts';
export { EventRecorder, EVENTS } from './event-recorder.ts';
export type { EventRecorderOptions, EventSink } from './event-recorder.ts';
export { LeaderElector, LEASES } from './leader-elector.ts';
export type { LeaderElectorOptions, Lease, LeaseSpec } from './leader-elector.ts';
export { withoutBookkeeping } from './bookkeeping.ts';
export { RuntimeMetrics } from './metrics.ts';
export type { CacheStats } from './metrics.ts';
export { ObjectCache } from './object-cache.ts';
export type { CacheScope, ObjectCacheOptions } from './object-cache.ts';
export { ObjectIndex } from './object-index.ts';
export type { IndexFunction } from './object-index.ts';
export { ObjectStore } from './object-store.ts';
export type { Change, ChangeListener, ObjectView } from './object-store.ts';
export {
  earlierResult,
  FAILED_REASON,
  outcomeOfError,
  ReconcileError,
  FIRST_REPORTED_FAILURE,
  Stalled,
  Waiting,
  worstFailure,
} from './reconcile-outcome.ts';
export type { ReconcileOutcome, ReconcileResult } from './reconcile-outcome.ts';
export { runSteps, withStatus } from './reconcile-steps.ts';
export type { LastStep, ReconcileAttempt, ReconcileStep } from './reconcile-steps.ts';
export { CONTESTED_REASON, withWriteBackoff } from './write-backoff.ts';
export type { WriteBackoffOptions } from './write-backoff.ts';
export { aborted } from './runnable.ts';
export type { Runnable } from './runnable.ts';
export { Runtime } from './runtime.ts';
export type { RunnableState, RunnableStatus, RuntimeOptions, StartGroup } from './runtime.ts';
export { SharedCaches } from './shared-caches.ts';
export type { SharedCachesOptions } from './shared-caches.ts';
export { annotationsChanged, anyOf, controllerKey, generationChanged, labelsChanged, ownKey, watch } from './watch.ts';
export type { KeyMapper, Predicate, Watch, WatchedCache, WatchOptions } from './watch.ts';
export { DEFAULT_PRIORITY, LOW_PRIORITY, WorkQueue } from './work-queue.ts';
export type { AddOptions, WorkQueueObserver, WorkQueueOptions } from './work-queue.ts';
