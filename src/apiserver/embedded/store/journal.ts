import type { KubernetesObject } from '../../../resources/index.ts';

/** A change of an object in the journal. */
export interface JournalEntry {
  /** `pods`, `deployments.apps` */
  readonly collection: string;
  /** Empty for cluster-scoped objects. */
  readonly namespace: string;
  readonly name: string;
  readonly revision: number;
  /** The object as JSON; undefined for a deletion. */
  readonly text: string | undefined;
}

/** The content of a journal at start. */
export interface JournalContents {
  /** The newest revision ever assigned. */
  readonly revision: number;
  readonly objects: Iterable<{ readonly collection: string; readonly object: KubernetesObject }>;
}

/**
 * The persistence of an {@link ObjectStore}. All methods are synchronous: a change is in the journal before it is visible.
 */
export interface Journal {
  load(): JournalContents;
  /** Writes all entries, or none when it throws. */
  append(entries: readonly JournalEntry[]): void;
  /** Small texts beside the objects (identity of the cluster, signing key). */
  readSetting(name: string): string | undefined;
  writeSetting(name: string, value: string): void;
  close(): void;
}

/** No persistence: the cluster ends with its process. */
export class MemoryJournal implements Journal {
  load(): JournalContents {
    return { revision: 0, objects: [] };
  }

  append(): void {
    // Nothing outlives the process.
  }

  readSetting(): string | undefined {
    return undefined;
  }

  writeSetting(): void {
    // Nothing outlives the process.
  }

  close(): void {
    // Nothing to close.
  }
}
