import type { CompiledPolicyModule } from '../../evaluation/index.ts';
import type { TableChange } from '../../evaluation/index.ts';

/** The modules of the workers: of serving and staged versions. */
export class PublishedModules {
  readonly #modules = new Map<string, CompiledPolicyModule>();

  /** In no particular order. */
  list(): CompiledPolicyModule[] {
    return [...this.#modules.values()];
  }

  /**
   * Modules to publish to the workers, and modules to retire.
   * @param used digests of all modules in use
   * @param loaded newly loaded modules; those not in use are omitted
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
