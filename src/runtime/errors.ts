export type RuntimeErrorCode =
  /** The durations of a leader election contradict each other. */
  | 'election-invalid'
  /** Leadership was lost, and the leader's work did not stop in time. */
  | 'leadership-lost'
  /** A runnable did not stop in time. */
  | 'stop-timeout';

/** A failure of the runtime itself. The message says what to do. */
export class RuntimeError extends Error {
  override readonly name = 'RuntimeError';
  readonly code: RuntimeErrorCode;

  constructor(code: RuntimeErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}
