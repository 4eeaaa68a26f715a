import type { CompiledPolicyModule } from '../../evaluation/index.ts';
import type { TableChange } from '../../evaluation/index.ts';

/** The modules that workers have: of revisions that serve, and of those that are loaded beside. */
export class RevisionModules {
  readonly #modules = new Map<string, CompiledPolicyModule>();

  /** In no order. */
  list(): CompiledPolicyModule[] {
    return [...this.#modules.values()];
  }

  /**
   * Follows what is used. What workers are to be given, and what they may forget.
   * @param used digests of all modules that are used
   * @param loaded modules that were loaded meanwhile; those that nobody uses are left out
   */
  change(used: ReadonlySet<string>, loaded: readonly CompiledPolicyModule[]): Pick<TableChange, 'modules' | 'retired'> {
    const modules: CompiledPolicyModule[] = [];
    for (const module of loaded) {
      if (used.has(module.digest) && !this.#modules.has(module.digest)) {
        this.#modules.set(module.digest, module);
        modules.push(module);
      }
    }
    const retired = [...this.#modules.keys()].filter((digest) => !used.has(digest));
    for (const digest of retired) {
      this.#modules.delete(digest);
    }
    return { modules, retired };
  }
}
