import type { BucketMember } from './bucket-member.ts';

/** Whom to ask about an object that policies change, and whom once more because another changed it afterwards. */
export class MutationRounds {
  readonly #asked = new Set<string>();
  readonly #again = new Set<string>();

  /** All, and then those for whom it changed. What is told between decides who comes. */
  *of(members: readonly BucketMember[]): Generator<BucketMember> {
    yield* members;
    for (const member of members) {
      if (this.#again.has(member.policy.id)) {
        yield member;
      }
    }
  }

  /** The object is another one now. Call it before {@link asked}: nobody is asked again because of itself. */
  changed(): void {
    for (const id of this.#asked) {
      this.#again.add(id);
    }
  }

  asked(id: string): void {
    this.#asked.add(id);
  }
}
