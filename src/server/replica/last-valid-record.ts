// Records the last valid parameters of namespaces whose parameters are invalid, for a replica that restarts meanwhile.
import type { ObjectReference } from '../../engine/index.ts';
import { fittingEntries, KeptFile } from '../../files/index.ts';
import type { LogEntry } from '../../log/index.ts';
import { isJsonObject } from '../../values/index.ts';

/** The object that parameters were in, as JSON text. */
export type LastValidEntry = readonly [reference: Omit<ObjectReference, 'annotations'>, text: string];

/** Changes within this time are written once. Milliseconds. */
const WRITE_DELAY_MS = 1_000;
/** Version of the file's format; a file of another version is moved aside. */
const FORMAT = 1;
/** For 10,000 tenants with invalid parameters of 1.6 KiB each. Others are not recorded. Bytes. */
const MAX_RECORD_BYTES = 16 * 1024 * 1024;

export class LastValidRecord {
  readonly #file: KeptFile;
  readonly #maxBytes: number;

  /** @param folder folder of the file; created when missing */
  constructor(folder: string, log: (entry: LogEntry) => void, maxBytes = MAX_RECORD_BYTES) {
    this.#maxBytes = maxBytes;
    this.#file = new KeptFile({
      folder,
      name: 'last-valid-parameters.json',
      delayMs: WRITE_DELAY_MS,
      maxBytes,
      unwritable: 'cannot keep the last valid parameters; after a restart, policies with KeepLast reject invalid ones',
      unreadable: 'the last valid parameters of before cannot be read and were set aside',
      log,
    });
  }

  /** An invalid file is moved aside and logged. */
  read(): readonly LastValidEntry[] {
    return this.#file.read(entriesOf) ?? [];
  }

  /** Writes the file soon; `current` is called at that time. */
  changed(current: () => Iterable<LastValidEntry>): void {
    this.#file.changed(() => ({ format: FORMAT, entries: fittingEntries([...current()], this.#maxBytes) }));
  }

  /** Writes pending changes now. */
  flush(): Promise<void> {
    return this.#file.flush();
  }
}

function entriesOf(content: unknown): readonly LastValidEntry[] {
  const { format, entries } = content as { format: unknown; entries: unknown };
  if (format !== FORMAT || !Array.isArray(entries) || !entries.every(isEntry)) {
    throw new Error(`expected format ${FORMAT} with references and texts of objects, got format ${String(format)}`);
  }
  return entries;
}

function isEntry(value: unknown): value is LastValidEntry {
  if (!Array.isArray(value) || value.length !== 2) {
    return false;
  }
  const [reference, text] = value as readonly unknown[];
  return (
    typeof text === 'string' &&
    isJsonObject(reference) &&
    ['apiVersion', 'kind', 'name'].every((field) => typeof reference[field] === 'string') &&
    ['string', 'undefined'].includes(typeof reference['namespace'])
  );
}
