/**
 * Tracks which policies were reconciled since this process became leader. Until all were, their records are incomplete, and
 * webhook configurations must not get narrower.
 */
export class ReconciledPolicies {
  readonly #reconciled = new Set<string>();
  /** Policies that are not reconciled yet. Undefined until the caches have synced. */
  #pending: Set<string> | undefined;

  /** Whether all policies were reconciled. */
  get isComplete(): boolean {
    return this.#pending?.size === 0;
  }

  /** @param ids all policies of the cluster */
  expect(ids: Iterable<string>): void {
    this.#pending = new Set(ids);
    for (const id of this.#reconciled) {
      this.#pending.delete(id);
    }
  }

  /** @returns whether this was the last one */
  markReconciled(id: string): boolean {
    if (this.isComplete) {
      return false;
    }
    this.#reconciled.add(id);
    return this.#pending?.delete(id) === true && this.isComplete;
  }

  /** Drops what is needed only until all policies were reconciled. */
  dropProgress(): void {
    this.#reconciled.clear();
  }

  clear(): void {
    this.dropProgress();
    this.#pending = undefined;
  }
}
