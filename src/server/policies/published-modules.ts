import type { CompiledPolicyModule, TableChange } from '../../evaluation/index.ts';

/** The modules of the workers: of serving and staged versions. */
export class PublishedModules {
  readonly #modules = new Map<string, CompiledPolicyModule>();
  /** Digests that each policy uses; a digest is listed once for each use. */
  readonly #used = new Map<string, readonly string[]>();
  /** How often a digest is used. */
  readonly #users = new Map<string, number>();

  /** In no particular order. */
  list(): CompiledPolicyModule[] {
    return [...this.#modules.values()];
  }

  /**
   * Modules to publish to the workers, and modules to retire.
   * @param used digests that the changed policies use, by policy; empty for a removed one
   * @param loaded newly loaded modules; those not in use are omitted
   */
  change(
    used: ReadonlyMap<string, readonly string[]>,
    loaded: readonly CompiledPolicyModule[],
  ): Pick<TableChange, 'modules' | 'retired'> {
    const unused = new Set<string>();
    for (const [id, digests] of used) {
      this.#use(id, digests, unused);
    }
    const modules: CompiledPolicyModule[] = [];
    for (const module of loaded) {
      if (this.#users.has(module.digest) && !this.#modules.has(module.digest)) {
        this.#modules.set(module.digest, module);
        modules.push(module);
      }
    }
    const retired = [...unused].filter((digest) => !this.#users.has(digest) && this.#modules.delete(digest));
    return { modules, retired };
  }

  /** @param unused receives digests that lost their last user */
  #use(id: string, digests: readonly string[], unused: Set<string>): void {
    for (const digest of digests) {
      this.#users.set(digest, (this.#users.get(digest) ?? 0) + 1);
    }
    for (const digest of this.#used.get(id) ?? []) {
      const users = (this.#users.get(digest) ?? 0) - 1;
      this.#users.set(digest, users);
      if (users <= 0) {
        this.#users.delete(digest);
        unused.add(digest);
      }
    }
    if (digests.length === 0) {
      this.#used.delete(id);
    } else {
      this.#used.set(id, digests);
    }
  }
}
