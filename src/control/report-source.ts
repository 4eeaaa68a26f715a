import type { RevisionReport } from './replica-protocol.ts';

/** What a replica has to say of revisions. */
export interface ReportSource {
  /** Whether the revisions of the cluster have been read. */
  readonly isSynced: boolean;
  /** All that there is to say, in no order. */
  reports(): Iterable<RevisionReport>;
  /** What there is to say of the PolicyRevision of that name; undefined when the replica has nothing of it. */
  report(name: string): RevisionReport | undefined;
  /**
   * Tells the names of PolicyRevisions of which there is something else to say than before, or nothing any more; none when
   * only {@link isSynced} changed. Ends with the function that it returns.
   */
  subscribe(listener: (names: readonly string[]) => void): () => void;
}
