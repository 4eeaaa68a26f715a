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

/** The content of a journal when it is opened. */
export interface JournalContents {
  /** The newest revision ever assigned. */
  readonly revision: number;
  readonly objects: Iterable<{ readonly collection: string; readonly object: KubernetesObject }>;
}

/**
 * The persistence of an {@link CollectionStore}. All methods are synchronous, so that a change is persistent before it is visible.
 */
export interface Journal {
  load(): JournalContents;
  /** Writes all entries, or none when it throws. */
  append(entries: readonly JournalEntry[]): void;
  /** Reads a small text that is not an object, such as the signing key. */
  readSetting(name: string): string | undefined;
  writeSetting(name: string, value: string): void;
  close(): void;
}

/** A journal that stores nothing, for clusters in memory. */
export class MemoryJournal implements Journal {
  load(): JournalContents {
    return { revision: 0, objects: [] };
  }

  append(): void {
    // Nothing is stored.
  }

  readSetting(): string | undefined {
    return undefined;
  }

  writeSetting(): void {
    // Nothing is stored.
  }

  close(): void {
    // Nothing to close.
  }
}
