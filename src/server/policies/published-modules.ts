import type { CompiledPolicyModule } from '../../evaluation/index.ts';
import type { TableChange } from '../../evaluation/index.ts';

/** The modules that workers have: of versions that serve, and of those that are loaded beside. */
export class PublishedModules {
  readonly #modules = new Map<string, CompiledPolicyModule>();

  /** In no order. */
  list(): CompiledPolicyModule[] {
    return [...this.#modules.values()];
  }

  /**
   * The modules to hand to the workers and those to retire.
   * @param used digests of all modules in use
   * @param loaded modules that were loaded since; those not in use are left out
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
