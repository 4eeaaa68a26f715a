// Records namespace labels on disk, for a replica that starts while its cluster is unavailable.
import type { LogEntry } from '../../log/index.ts';
import { fittingEntries, KeptFile } from '../../files/index.ts';

/** The labels of one namespace. */
export type NamespaceEntry = readonly [name: string, labels: Readonly<Record<string, string>>];

/** Changes within this time are written once: with thousands of namespaces a write is a megabyte. Milliseconds. */
const WRITE_DELAY_MS = 1_000;
/** Version of the file's format; a file of another version is moved aside. */
const FORMAT = 1;
/**
 * For the tested limit of Kubernetes (10,000 namespaces) with 1.6 KiB of labels each; five labels take 0.3 KiB. Bytes.
 */
const MAX_NAMESPACE_RECORD_BYTES = 16 * 1024 * 1024;

/** The file that records namespace labels. Namespaces that do not fit are omitted, which is logged once. */
export class NamespaceRecord {
  readonly #file: KeptFile;
  readonly #log: (entry: LogEntry) => void;
  readonly #maxBytes: number;
  #isOverflowLogged = false;

  /** @param folder folder of the file; created when missing */
  constructor(folder: string, log: (entry: LogEntry) => void, maxBytes = MAX_NAMESPACE_RECORD_BYTES) {
    this.#log = log;
    this.#maxBytes = maxBytes;
    this.#file = new KeptFile({
      folder,
      name: 'namespaces.json',
      delayMs: WRITE_DELAY_MS,
      maxBytes,
      unwritable:
        'cannot keep the labels of namespaces; a restart will need the API server for policies that select by them',
      unreadable: 'the labels of namespaces of before cannot be read and were set aside',
      log,
    });
  }

  /** Reads the recorded labels by name. An invalid file is moved aside and logged. */
  read(): Map<string, NamespaceEntry[1]> {
    return this.#file.read(namespacesOf) ?? new Map<string, NamespaceEntry[1]>();
  }

  /** Writes the file soon; `current` is called at that time. */
  changed(current: () => Iterable<NamespaceEntry>): void {
    this.#file.changed(() => ({ format: FORMAT, namespaces: this.#fitting([...current()]) }));
  }

  /** Writes pending changes now. */
  flush(): Promise<void> {
    return this.#file.flush();
  }

  #fitting(namespaces: readonly NamespaceEntry[]): readonly NamespaceEntry[] {
    const fitting = fittingEntries(namespaces, this.#maxBytes);
    const leftOut = namespaces.length - fitting.length;
    if (leftOut > 0 && !this.#isOverflowLogged) {
      this.#isOverflowLogged = true;
      this.#log({
        level: 'warn',
        message: 'the labels of some namespaces are not kept for a restart: there are too many',
        fields: { leftOut, maxBytes: this.#maxBytes },
      });
    }
    return fitting;
  }
}

function namespacesOf(content: unknown): Map<string, NamespaceEntry[1]> {
  const { format, namespaces } = content as { format: unknown; namespaces: unknown };
  if (format !== FORMAT || !Array.isArray(namespaces) || !namespaces.every(isNamespace)) {
    throw new Error(`expected format ${FORMAT} with names and labels of namespaces, got format ${String(format)}`);
  }
  return new Map(namespaces);
}

function isNamespace(value: unknown): value is NamespaceEntry {
  if (!Array.isArray(value) || value.length !== 2) {
    return false;
  }
  const [name, labels] = value as readonly unknown[];
  return (
    typeof name === 'string' &&
    typeof labels === 'object' &&
    labels !== null &&
    !Array.isArray(labels) &&
    Object.values(labels).every((label) => typeof label === 'string')
  );
}
