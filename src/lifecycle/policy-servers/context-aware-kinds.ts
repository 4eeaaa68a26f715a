// The kinds that the policies of each PolicyServer declare.
import { type AdmissionPolicyObject, POLICY_KINDS, type PolicyRevision } from '../../resources/index.ts';
import { type ObjectCache, type ObjectIndex, type SharedCaches, type Watch, watch } from '../../runtime/index.ts';
import { type DeclaredKind, declaredKinds, kindsOfPolicy, kindsOfRevision } from './context-aware-rules.ts';

interface PolicyCache {
  readonly cache: ObjectCache<AdmissionPolicyObject>;
  readonly byServer: ObjectIndex<AdmissionPolicyObject>;
  /** The few policies that declare kinds. */
  readonly declaring: ObjectIndex<AdmissionPolicyObject>;
}

export class ContextAwareKinds {
  readonly #policies: readonly PolicyCache[];
  readonly #revisions: ObjectCache<PolicyRevision>;
  readonly #declaringRevisions: ObjectIndex<PolicyRevision>;

  /** @param revisions those in the namespace of Portcullis */
  constructor(caches: SharedCaches, revisions: ObjectCache<PolicyRevision>) {
    this.#policies = POLICY_KINDS.map((kind) => {
      const cache = caches.cache(kind);
      const byServer = cache.index((policy) => [serverOf(policy)]);
      const declaring = cache.index((policy) => (kindsOfPolicy(policy).length > 0 ? [serverOf(policy)] : []));
      return { cache, byServer, declaring };
    });
    this.#revisions = revisions;
    this.#declaringRevisions = revisions.index((revision) =>
      kindsOfRevision(revision).length > 0 ? [revision.spec.policyServer] : [],
    );
  }

  of(policyServer: string): readonly DeclaredKind[] {
    return declaredKinds(
      this.#policies.flatMap(({ declaring }) => declaring.get(policyServer)),
      this.#declaringRevisions.get(policyServer),
    );
  }

  /** Number of policies of the PolicyServer. */
  countPolicies(policyServer: string): number {
    return this.#policies.reduce((sum, { byServer }) => sum + byServer.count(policyServer), 0);
  }

  /** Changes of declarations, and deletions of policies, by PolicyServer. */
  watches(): readonly Watch[] {
    return [
      ...this.#policies.map(({ cache }) =>
        watch(cache, {
          keys: (policy) => [{ name: serverOf(policy) }],
          when: [
            ({ before, after }) =>
              after === undefined || textOf(before, kindsOfPolicy) !== textOf(after, kindsOfPolicy),
          ],
        }),
      ),
      watch(this.#revisions, {
        keys: ({ spec }) => [{ name: spec.policyServer }],
        when: [({ before, after }) => textOf(before, kindsOfRevision) !== textOf(after, kindsOfRevision)],
      }),
    ];
  }
}

function serverOf({ spec }: AdmissionPolicyObject): string {
  return spec.policyServer ?? 'default';
}

function textOf<T>(object: T | undefined, kindsOf: (object: T) => readonly object[]): string {
  return JSON.stringify(object === undefined ? [] : kindsOf(object));
}
