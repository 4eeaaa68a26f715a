import type { KubernetesObject } from '../../../resources/index.ts';

/** One change of one object, as it is written down. */
export interface JournalEntry {
  /** `pods`, `deployments.apps` */
  readonly collection: string;
  /** Empty for cluster-scoped objects. */
  readonly namespace: string;
  readonly name: string;
  readonly revision: number;
  /** The object as JSON; undefined when it is removed. */
  readonly text: string | undefined;
}

/** What was written down when the store was last open. */
export interface JournalContents {
  /** The newest revision that was ever given out. */
  readonly revision: number;
  readonly objects: Iterable<{ readonly collection: string; readonly object: KubernetesObject }>;
}

/**
 * Where an {@link ObjectStore} writes down what it will remember. All methods are synchronous: a change is in the journal before
 * anybody can see it.
 */
export interface Journal {
  load(): JournalContents;
  /** All entries, or none when it throws. */
  append(entries: readonly JournalEntry[]): void;
  /** Small texts beside the objects (identity of the cluster, signing key). */
  readSetting(name: string): string | undefined;
  writeSetting(name: string, value: string): void;
  close(): void;
}

/** Remembers nothing: the cluster ends with its process. */
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
    // There is nothing to close.
  }
}
