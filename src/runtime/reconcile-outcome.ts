// What the end of a reconciliation means: for the queue, the object's conditions, its events and the log. Only here.
import { ApiError } from '../cluster/index.ts';
import { errorText } from './error-text.ts';
import { RETRY_CAP_MS } from './work-queue.ts';

/** The user must act: nothing is tried again until the object changes. */
export class Stalled extends Error {
  override readonly name = 'Stalled';
  /** CamelCase, for the condition and the event. */
  readonly reason: string;

  constructor(reason: string, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.reason = reason;
  }
}

/** Something else has to happen first, which nobody tells of: looked at again after a while. Not a failure. */
export class Waiting extends Error {
  override readonly name = 'Waiting';
  /** CamelCase, for the condition. */
  readonly reason: string;
  /** Milliseconds. */
  readonly afterMs: number;

  constructor(reason: string, afterMs: number, message: string = `looked at again in ${seconds(afterMs)}`) {
    super(message);
    this.reason = reason;
    this.afterMs = afterMs;
  }
}

/** Of what several attempts ended with, what to tell: a failure rather than what only waits. Undefined: none did. */
export function tellingFailure(failures: Iterable<unknown>): unknown {
  const all = [...failures];
  return all.find((failure) => !(failure instanceof Waiting)) ?? all[0];
}

/** What a reconciler may ask for when all is well. */
export interface ReconcileResult {
  /** Look at the object again after so many milliseconds, even when nothing changes. */
  readonly requeueAfterMs?: number;
}

/** A condition as it should be (`metav1.Condition` without its times). */
export interface ConditionChange {
  readonly type: 'Ready' | 'Stalled' | 'Reconciling';
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
}

/** What to do about the end of one reconciliation. */
export interface ReconcileOutcome {
  readonly kind: 'success' | 'requeue' | 'stalled' | 'waiting' | 'conflict' | 'throttled' | 'failed' | 'interrupted';
  readonly queue:
    | { readonly action: 'forget' }
    | { readonly action: 'after'; readonly afterMs: number }
    | { readonly action: 'backoff' };
  /** In the words of kstatus: `Ready`, and what keeps it from being so. Empty: leave them as they are. */
  readonly conditions: readonly ConditionChange[];
  readonly event:
    | { readonly type: 'Normal' | 'Warning'; readonly reason: string; readonly message: string }
    | undefined;
  readonly log:
    | {
        readonly level: 'debug' | 'info' | 'warn' | 'error';
        readonly message: string;
        readonly fields: Readonly<Record<string, unknown>>;
      }
    | undefined;
}

/** The reason of a failure that says of itself no more than a message. */
export const FAILED_REASON = 'ReconcileFailed';
/** The reason of what is well. */
export const SUCCEEDED_REASON = 'Succeeded';
/** Longest message in a condition: `metav1.Condition` takes 32,768 characters; nobody reads more than this. */
export const MAX_MESSAGE_LENGTH = 1024;

/** The longest wait that a server is granted: whatever it, or a proxy before it, says. As that of a queue. Milliseconds. */
export const MAX_THROTTLE_MS = RETRY_CAP_MS;

/** The outcome of a reconciliation that did not throw. */
export function outcomeOfResult(result: ReconcileResult | void): ReconcileOutcome {
  const afterMs = result?.requeueAfterMs;
  return {
    kind: afterMs === undefined ? 'success' : 'requeue',
    queue: afterMs === undefined ? { action: 'forget' } : { action: 'after', afterMs },
    conditions: [
      { type: 'Ready', status: 'True', reason: SUCCEEDED_REASON, message: '' },
      ...cleared(SUCCEEDED_REASON, 'Stalled', 'Reconciling'),
    ],
    event: undefined,
    log: undefined,
  };
}

/** The outcome of a reconciliation that threw. `signal` is the one that the reconciler had. */
export function outcomeOfError(error: unknown, signal?: AbortSignal): ReconcileOutcome {
  const message = messageOf(error);
  if (signal?.aborted === true) {
    // The process or its leadership ends: whoever comes next does the work.
    return { kind: 'interrupted', queue: { action: 'forget' }, conditions: [], event: undefined, log: undefined };
  }
  if (error instanceof Stalled) {
    const { reason } = error;
    return {
      kind: 'stalled',
      queue: { action: 'forget' },
      conditions: [...failing('Stalled', reason, message), ...cleared(reason, 'Reconciling')],
      event: { type: 'Warning', reason, message },
      log: { level: 'warn', message: 'reconciliation stalled', fields: { reason, error: message } },
    };
  }
  if (error instanceof Waiting) {
    const { reason, afterMs } = error;
    return {
      kind: 'waiting',
      queue: { action: 'after', afterMs },
      conditions: [...failing('Reconciling', reason, message, 'Unknown'), ...cleared(reason, 'Stalled')],
      event: undefined,
      log: { level: 'debug', message: 'reconciliation waits', fields: { reason, afterMs, detail: message } },
    };
  }
  if (error instanceof ApiError && error.reason === 'Conflict') {
    // A cache is behind its cluster: the next try, some milliseconds later, sees what this one did not.
    const log = { level: 'debug' as const, message: 'reconciliation conflicts', fields: { error: message } };
    return { kind: 'conflict', queue: { action: 'backoff' }, conditions: [], event: undefined, log };
  }
  const retryAfterSeconds = error instanceof ApiError ? error.details?.retryAfterSeconds : undefined;
  if (retryAfterSeconds !== undefined && retryAfterSeconds > 0) {
    const afterMs = Math.min(retryAfterSeconds * 1000, MAX_THROTTLE_MS);
    const log = { level: 'info' as const, message: 'reconciliation throttled', fields: { afterMs, error: message } };
    return { kind: 'throttled', queue: { action: 'after', afterMs }, conditions: [], event: undefined, log };
  }
  return {
    kind: 'failed',
    queue: { action: 'backoff' },
    conditions: [...failing('Reconciling', FAILED_REASON, message), ...cleared(FAILED_REASON, 'Stalled')],
    event: { type: 'Warning', reason: FAILED_REASON, message },
    log: { level: 'error', message: 'reconciliation failed', fields: { error: message, ...stackOf(error) } },
  };
}

function failing(
  type: 'Stalled' | 'Reconciling',
  reason: string,
  message: string,
  ready: 'False' | 'Unknown' = 'False',
): readonly ConditionChange[] {
  return [
    { type: 'Ready', status: ready, reason, message },
    { type, status: 'True', reason, message },
  ];
}

function cleared(reason: string, ...types: readonly ('Stalled' | 'Reconciling')[]): readonly ConditionChange[] {
  return types.map((type) => ({ type, status: 'False', reason, message: '' }));
}

function messageOf(error: unknown): string {
  const text = errorText(error);
  return text.length <= MAX_MESSAGE_LENGTH ? text : `${text.slice(0, MAX_MESSAGE_LENGTH - 1)}…`;
}

/** A mistake of ours is found by where it happened; a cluster's refusal by its words. */
function stackOf(error: unknown): Readonly<Record<string, string>> {
  const isMistake = error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError;
  return isMistake && error.stack !== undefined ? { stack: error.stack } : {};
}

function seconds(ms: number): string {
  return `${Math.round(ms / 100) / 10} s`;
}
