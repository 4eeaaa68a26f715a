import { listed } from '../../../values/index.ts';

/** Names that a note lists. */
const MAX_LISTED = 3;

/** What only a cluster can check about matches, and is taken to match. */
export class UncheckedMatches {
  /** Policies by the namespace that they are taken to select. */
  readonly #namespaces = new Map<string, Set<string>>();
  readonly #authorizers = new Set<string>();

  /** @param namespace of the request */
  add(policy: string, unchecked: readonly ('namespaceSelector' | 'authorizer')[], namespace: string): void {
    for (const one of unchecked) {
      const policies = one === 'authorizer' ? this.#authorizers : (this.#namespaces.get(namespace) ?? new Set());
      policies.add(policy);
      if (one === 'namespaceSelector') {
        this.#namespaces.set(namespace, policies);
      }
    }
  }

  notes(): readonly string[] {
    return [
      ...[...this.#namespaces].map(
        ([namespace, policies]) =>
          `the namespaceSelector of ${names(policies)} is taken to select the namespace ${namespace}, whose manifest is not given`,
      ),
      ...(this.#authorizers.size === 0
        ? []
        : [`the matchConditions of ${names(this.#authorizers)} with the authorizer are taken to be true`]),
    ];
  }
}

function names(policies: ReadonlySet<string>): string {
  return listed([...policies], MAX_LISTED);
}
