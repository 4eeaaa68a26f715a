import type { ExceptionUse } from './replica-protocol.ts';

/** The uses of exceptions that a replica counts. */
export interface UseSource {
  /** All current counts. */
  uses(): Iterable<ExceptionUse>;
  /** The count of an exception by its `metadata.uid`; undefined without any. */
  use(uid: string): ExceptionUse | undefined;
  /** Calls `listener` with the uids of exceptions whose count is to be reported again. Returns a function that unsubscribes. */
  subscribe(listener: (uids: readonly string[]) => void): () => void;
}
