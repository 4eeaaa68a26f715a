import { CodedError } from '../values/index.ts';

export type RuntimeErrorCode =
  /** The durations of a leader election contradict each other. */
  | 'election-invalid'
  /** Leadership was lost, and the leader's work did not stop in time. */
  | 'leadership-lost'
  /** A runnable did not stop in time. */
  | 'stop-timeout';

/** A failure of the runtime itself. The message says what to do. */
export class RuntimeError extends CodedError<RuntimeErrorCode> {
  override readonly name = 'RuntimeError';
}
