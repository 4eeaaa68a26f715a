import { splitResource } from '../../resources/index.ts';
import type { ReviewTarget } from '../admission-review.ts';
import type { BucketMember } from './bucket-member.ts';

/** Policies by the operations and resources that their rules name. */
export class RuleIndex {
  readonly #byKey = new Map<string, Set<BucketMember>>();

  get isEmpty(): boolean {
    return this.#byKey.size === 0;
  }

  add(member: BucketMember): void {
    for (const key of keysOf(member)) {
      const members = this.#byKey.get(key) ?? new Set();
      this.#byKey.set(key, members);
      members.add(member);
    }
  }

  delete(member: BucketMember): void {
    for (const key of keysOf(member)) {
      const members = this.#byKey.get(key);
      members?.delete(member);
      if (members?.size === 0) {
        this.#byKey.delete(key);
      }
    }
  }

  /** Adds those that have one of the keys of {@link keysFor}. */
  collect(keys: readonly string[], found: Set<BucketMember>): void {
    for (const key of keys) {
      for (const member of this.#byKey.get(key) ?? []) {
        found.add(member);
      }
    }
  }
}

/** Under which keys a review's policies are. */
export function keysFor({ operation, resource: { resource } }: ReviewTarget): readonly string[] {
  return [`${operation} ${resource}`, `* ${resource}`, `${operation} *`, '* *'];
}

function* keysOf({ rules }: BucketMember): Generator<string> {
  for (const { operations, resources } of rules) {
    for (const operation of operations) {
      for (const resource of resources) {
        yield `${operation} ${splitResource(resource)[0]}`;
      }
    }
  }
}
