export type RuntimeErrorCode =
  /** Durations of a leader election contradict each other. */
  | 'election-invalid'
  /** Leadership was lost, and what only a leader may do did not stop in time. */
  | 'leadership-lost'
  /** What was to stop did not, in the time that it had. */
  | 'stop-timeout';

/** A failure of the runtime itself: what happened, and what to do. */
export class RuntimeError extends Error {
  override readonly name = 'RuntimeError';
  readonly code: RuntimeErrorCode;

  constructor(code: RuntimeErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}
