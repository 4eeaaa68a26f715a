// What became of the copies in this process: written by the reconciler of copies, read for the status of their roots.
import { keyText, type ObjectKey, type Readiness } from '../../../resources/index.ts';

export interface CopyRecord {
  /** The generation of the root that the copy was last reconciled for. */
  readonly rootGeneration: number | undefined;
  /** The revision of the root that the copy was last reconciled for; undefined where none are kept, or none serves. */
  readonly revision: number | undefined;
  /** The generation of the copy that has the spec of this root; undefined if it was not written. */
  readonly copyGeneration: number | undefined;
  /** Why it could not be written or deleted. */
  readonly failure: Readiness | undefined;
}

export class CopyRecords {
  readonly #records = new Map<string, CopyRecord>();
  readonly #changed: (root: ObjectKey) => void;

  /** @param changed called with the root of a copy that was reconciled */
  constructor(changed: (root: ObjectKey) => void) {
    this.#changed = changed;
  }

  /** @param key of the copy */
  get(key: ObjectKey): CopyRecord | undefined {
    return this.#records.get(keyText(key));
  }

  /** @param record undefined if the root is gone */
  set(key: ObjectKey, root: ObjectKey, record: CopyRecord | undefined): void {
    if (record === undefined) {
      this.#records.delete(keyText(key));
    } else {
      this.#records.set(keyText(key), record);
    }
    this.#changed(root);
  }
}
