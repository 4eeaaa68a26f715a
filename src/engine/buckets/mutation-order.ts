import type { BucketMember } from './bucket-member.ts';

/**
 * Order in which mutating policies run, including reinvocation of those that ran before another policy changed the
 * object.
 */
export class MutationOrder {
  readonly #evaluated = new Set<string>();
  readonly #reinvoked = new Set<string>();

  /** All policies, then those to reinvoke. Calls of the other methods in between decide which. */
  *members(members: readonly BucketMember[]): Generator<BucketMember> {
    yield* members;
    for (const member of members) {
      if (this.#reinvoked.has(member.policy.id)) {
        yield member;
      }
    }
  }

  /** Reports a change of the object. Call it before {@link evaluated}: a policy is not reinvoked for its own change. */
  objectChanged(): void {
    for (const id of this.#evaluated) {
      this.#reinvoked.add(id);
    }
  }

  evaluated(id: string): void {
    this.#evaluated.add(id);
  }
}
