// Maps the end of a reconciliation to the queue, the object's status, its events and the log. No other place does.
import { ApiError } from '../cluster/index.ts';
import type { Readiness } from '../resources/index.ts';
import { errorText, shortened } from '../values/index.ts';
import { RETRY_CAP_MS } from './work-queue.ts';

/** When a failed reconciliation is retried: when the object changes, after a growing delay, or after a fixed time. */
export type Retry = 'on change' | 'with backoff' | { readonly afterMs: number };

/** A failure with a reason for the user. Any other error is retried with backoff. */
export class ReconcileError extends Error {
  override readonly name: string = 'ReconcileError';
  /** CamelCase, for conditions and events. */
  readonly reason: string;
  readonly retry: Retry;

  constructor(
    reason: string,
    message: string,
    { retry = 'with backoff', ...options }: { readonly retry?: Retry; readonly cause?: unknown } = {},
  ) {
    super(message, options);
    this.reason = reason;
    this.retry = retry;
  }
}

/** A user must act: no retry until the object changes. */
export class Stalled extends ReconcileError {
  override readonly name = 'Stalled';

  constructor(reason: string, message: string, options?: { readonly cause?: unknown }) {
    super(reason, message, { ...options, retry: 'on change' });
  }
}

/** Waits for something that no watch reports: reconciled again after a fixed time. Not counted as a failure. */
export class Waiting extends ReconcileError {
  override readonly name = 'Waiting';
  /** Milliseconds. */
  readonly afterMs: number;

  constructor(reason: string, afterMs: number, message: string = `looked at again in ${seconds(afterMs)}`) {
    super(reason, message, { retry: { afterMs } });
    this.afterMs = afterMs;
  }
}

/** The most important of several failures: the first that is not `Waiting`. Undefined if there are none. */
export function worstFailure(failures: Iterable<unknown>): unknown {
  const all = [...failures];
  return all.find((failure) => !(failure instanceof Waiting)) ?? all[0];
}

/** The result of a successful reconciliation. */
export interface ReconcileResult {
  /** Reconcile again after this time, even without a change. */
  readonly requeueAfterMs?: number;
}

/** The result with the earlier requeue. */
export function earlierResult(left: ReconcileResult, right: ReconcileResult): ReconcileResult {
  const times = [left.requeueAfterMs, right.requeueAfterMs].filter((time) => time !== undefined);
  return times.length === 0 ? {} : { requeueAfterMs: Math.min(...times) };
}

/** The effects of the end of one reconciliation. */
export interface ReconcileOutcome {
  readonly kind: 'success' | 'requeue' | 'stalled' | 'waiting' | 'conflict' | 'throttled' | 'failed' | 'interrupted';
  readonly queue:
    | { readonly action: 'forget' }
    | { readonly action: 'after'; readonly afterMs: number }
    /** Counts as a failure. Without `afterMs`, the delay grows with each failure. */
    | { readonly action: 'backoff'; readonly afterMs?: number };
  /** The failure for the object's status, if any. */
  readonly failure: Readiness | undefined;
  readonly event: { readonly type: 'Warning'; readonly reason: string; readonly message: string } | undefined;
  readonly log:
    | {
        readonly level: 'debug' | 'info' | 'warn' | 'error';
        readonly message: string;
        readonly fields: Readonly<Record<string, unknown>>;
      }
    | undefined;
}

/** Default reason of a failure. */
export const FAILED_REASON = 'ReconcileFailed';
/** Longest message in a condition, for readability; `metav1.Condition` allows 32,768 characters. */
export const MAX_MESSAGE_LENGTH = 1024;

/** Longest wait that a server can request with Retry-After: that of the queue. Milliseconds. */
export const MAX_THROTTLE_MS = RETRY_CAP_MS;

/**
 * The number of the first consecutive conflict or throttled write that appears in the status. A cache that is behind
 * catches up within the backoff of the first four, 75 ms.
 */
export const FIRST_REPORTED_FAILURE = 5;

/** Status codes of rejections that depend on the content of the write: a retry gets the same answer. */
const DEFINITE_CODES: ReadonlySet<number> = new Set([400, 413, 422]);

/** Errors that reconcilers may treat differently. */
export type ErrorKind =
  /** Conflict or AlreadyExists: a cache was behind the cluster; the next attempt reads the newer state. */
  | 'conflict'
  | 'forbidden'
  /** The object is invalid or too large: the same write would be refused again. */
  | 'refused'
  /** All others: the API server is not reached, fails or throttles. */
  | 'unavailable';

export function errorKind(error: unknown): ErrorKind {
  const code = error instanceof ApiError ? error.code : 0;
  return code === 409 ? 'conflict' : code === 403 ? 'forbidden' : DEFINITE_CODES.has(code) ? 'refused' : 'unavailable';
}

/** The outcome of a reconciliation that returned. */
export function outcomeOfResult(result: ReconcileResult | void): ReconcileOutcome {
  const afterMs = result?.requeueAfterMs;
  return {
    kind: afterMs === undefined ? 'success' : 'requeue',
    queue: afterMs === undefined ? { action: 'forget' } : { action: 'after', afterMs },
    failure: undefined,
    event: undefined,
    log: undefined,
  };
}

/**
 * The outcome of a reconciliation that threw.
 *
 * @param signal aborted when the process stops or loses leadership
 * @param failures consecutive failures before this one
 */
export function outcomeOfError(error: unknown, signal?: AbortSignal, failures: number = 0): ReconcileOutcome {
  const message = messageOf(error);
  if (signal?.aborted === true) {
    // The next leader reconciles the object.
    return { kind: 'interrupted', queue: { action: 'forget' }, failure: undefined, event: undefined, log: undefined };
  }
  if (error instanceof ReconcileError) {
    return outcomeOfKnown(error, message);
  }
  const isShown = failures + 1 >= FIRST_REPORTED_FAILURE;
  const failure: Readiness = { state: 'reconciling', reason: FAILED_REASON, message };
  const kind = errorKind(error);
  if (kind === 'conflict') {
    const log = { level: 'debug' as const, message: 'reconciliation conflicts', fields: { error: message } };
    const shown = isShown ? failure : undefined;
    return { kind: 'conflict', queue: { action: 'backoff' }, failure: shown, event: undefined, log };
  }
  const retryAfterSeconds = error instanceof ApiError ? error.details?.retryAfterSeconds : undefined;
  if (retryAfterSeconds !== undefined && retryAfterSeconds > 0) {
    const afterMs = Math.min(retryAfterSeconds * 1000, MAX_THROTTLE_MS);
    const log = { level: 'info' as const, message: 'reconciliation throttled', fields: { afterMs, error: message } };
    const shown = isShown ? failure : undefined;
    return { kind: 'throttled', queue: { action: 'backoff', afterMs }, failure: shown, event: undefined, log };
  }
  return failed(FAILED_REASON, error, message, kind === 'refused' ? 'stalled' : 'reconciling');
}

function outcomeOfKnown(error: ReconcileError, message: string): ReconcileOutcome {
  const { reason, retry } = error;
  if (retry === 'with backoff') {
    return failed(reason, error, message, 'reconciling');
  }
  if (retry === 'on change') {
    return {
      kind: 'stalled',
      queue: { action: 'forget' },
      failure: { state: 'stalled', reason, message },
      event: { type: 'Warning', reason, message },
      log: { level: 'warn', message: 'reconciliation stalled', fields: { reason, error: message } },
    };
  }
  const { afterMs } = retry;
  return {
    kind: 'waiting',
    queue: { action: 'after', afterMs },
    failure: { state: 'reconciling', reason, message },
    event: undefined,
    log: { level: 'debug', message: 'reconciliation waits', fields: { reason, afterMs, detail: message } },
  };
}

function failed(reason: string, error: unknown, message: string, state: 'reconciling' | 'stalled'): ReconcileOutcome {
  return {
    kind: 'failed',
    queue: { action: 'backoff' },
    failure: { state, reason, message },
    event: { type: 'Warning', reason, message },
    log: { level: 'error', message: 'reconciliation failed', fields: { reason, error: message, ...stackOf(error) } },
  };
}

function messageOf(error: unknown): string {
  return shortened(errorText(error), MAX_MESSAGE_LENGTH);
}

/** The stack of a bug in our code; an error from the cluster needs none. */
function stackOf(error: unknown): Readonly<Record<string, string>> {
  const isMistake = error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError;
  return isMistake && error.stack !== undefined ? { stack: error.stack } : {};
}

function seconds(ms: number): string {
  return `${Math.round(ms / 100) / 10} s`;
}
