import type { RevisionReport } from './replica-protocol.ts';

/** The reports of a replica on its revisions. */
export interface ReportSource {
  /** Whether the revisions of the cluster have been read. */
  readonly isSynced: boolean;
  /** All current reports, unordered. */
  reports(): Iterable<RevisionReport>;
  /** The report on a PolicyRevision; undefined if the replica does not have it. */
  report(name: string): RevisionReport | undefined;
  /**
   * Calls `listener` with the names of PolicyRevisions whose report changed or was removed; with no names when only
   * {@link isSynced} changed. Returns a function that unsubscribes.
   */
  subscribe(listener: (names: readonly string[]) => void): () => void;
}
