import type { ContextAwareResource } from '../../resources/index.ts';
import type { PolicyDefinition } from '../../engine/index.ts';
import type { TableChange } from '../evaluation-protocol.ts';

/** The kinds that policies of the table may read from the cluster, by policy. */
export class DeclaredKinds {
  readonly #byPolicy = new Map<string, readonly ContextAwareResource[]>();
  readonly #byStaged = new Map<string, readonly ContextAwareResource[]>();

  /**
   * Applies a change of the table. `staged`: definitions loaded beside the table, by policy, whose kinds must be cached when they
   * begin to serve. Returns whether the kinds may have changed.
   */
  apply(
    { upserts, removals }: Pick<TableChange, 'upserts' | 'removals'>,
    staged: ReadonlyMap<string, readonly PolicyDefinition[]> = new Map(),
  ): boolean {
    let isChanged = false;
    for (const [id, definitions] of staged) {
      const kinds = definitions.flatMap(kindsOf);
      isChanged = this.#byStaged.delete(id) || isChanged || kinds.length > 0;
      if (kinds.length > 0) {
        this.#byStaged.set(id, kinds);
      }
    }
    for (const id of removals) {
      isChanged = this.#byPolicy.delete(id) || isChanged;
      isChanged = this.#byStaged.delete(id) || isChanged;
    }
    for (const entry of upserts) {
      const kinds = 'definition' in entry ? kindsOf(entry.definition) : [];
      if (kinds.length > 0) {
        this.#byPolicy.set(entry.id, kinds);
        isChanged = true;
      } else {
        isChanged = this.#byPolicy.delete(entry.id) || isChanged;
      }
    }
    return isChanged;
  }

  /** Without duplicates, in the order of their first declaration. */
  list(): readonly ContextAwareResource[] {
    const kinds = new Map<string, ContextAwareResource>();
    for (const declared of [this.#byPolicy, this.#byStaged]) {
      for (const resource of declared.values().flatMap((ofPolicy) => ofPolicy)) {
        kinds.set(`${resource.apiVersion} ${resource.kind}`, resource);
      }
    }
    return [...kinds.values()];
  }
}

function kindsOf(definition: PolicyDefinition): readonly ContextAwareResource[] {
  return definition.kind === 'policy'
    ? definition.contextAwareResources
    : definition.members.flatMap((member) => member.contextAwareResources);
}
