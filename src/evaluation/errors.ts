// Every error of evaluation as a whole, by code. What a single policy does wrong is part of its verdict.
import { CodedError } from '../values/index.ts';

/** What went wrong, for programs. */
export type EvaluationErrorCode =
  /** The policies file cannot be read. */
  | 'policies-unreadable'
  /** More requests wait than the server holds. */
  | 'overloaded'
  /** The server is stopping and takes no more work. */
  | 'stopping'
  /** A thread ended before it answered. */
  | 'thread-ended'
  /** The process ended while it loaded this before; it is loaded again later. */
  | 'quarantined';

/** An error of loading or evaluation: what happened, and what to do about it. */
export class EvaluationError extends CodedError<EvaluationErrorCode> {
  override readonly name = 'EvaluationError';
}
