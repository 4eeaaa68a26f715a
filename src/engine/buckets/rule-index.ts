import { splitResource } from '../../resources/index.ts';
import type { ReviewTarget } from '../review/admission-review.ts';
import type { BucketMember } from './bucket-member.ts';

/** Keys to look up candidates by. */
export interface Lookup {
  /** See {@link keysFor}. */
  readonly keys: readonly string[];
  /**
   * See {@link labelText}: labels of the review's objects, built on first use. Undefined when there are too many, or
   * when mutating policies may change them: then no label excludes a policy.
   */
  readonly labels: () => ReadonlySet<string> | undefined;
}

/** Policies by the operations and resources of their rules, and by a label that their objects must have. */
export class RuleIndex {
  readonly #byKey = new Map<string, ByLabel>();

  get isEmpty(): boolean {
    return this.#byKey.size === 0;
  }

  add(member: BucketMember): void {
    for (const key of keysOf(member)) {
      const members = this.#byKey.get(key) ?? new ByLabel();
      this.#byKey.set(key, members);
      members.add(member);
    }
  }

  delete(member: BucketMember): void {
    for (const key of keysOf(member)) {
      const members = this.#byKey.get(key);
      members?.delete(member);
      if (members?.isEmpty === true) {
        this.#byKey.delete(key);
      }
    }
  }

  /** Adds the candidates for a lookup to `found`. */
  collect({ keys, labels }: Lookup, found: Set<BucketMember>): void {
    for (const key of keys) {
      this.#byKey.get(key)?.collect(labels, found);
    }
  }
}

/** Policies by {@link BucketMember.requiredObjectLabel}. */
class ByLabel {
  readonly #unlabelled = new Set<BucketMember>();
  readonly #labelled = new Map<string, Set<BucketMember>>();

  get isEmpty(): boolean {
    return this.#unlabelled.size === 0 && this.#labelled.size === 0;
  }

  add(member: BucketMember): void {
    if (member.requiredObjectLabel === undefined) {
      this.#unlabelled.add(member);
    }
    for (const label of labelsOf(member)) {
      const members = this.#labelled.get(label) ?? new Set();
      this.#labelled.set(label, members);
      members.add(member);
    }
  }

  delete(member: BucketMember): void {
    this.#unlabelled.delete(member);
    for (const label of labelsOf(member)) {
      const members = this.#labelled.get(label);
      members?.delete(member);
      if (members?.size === 0) {
        this.#labelled.delete(label);
      }
    }
  }

  collect(labels: Lookup['labels'], found: Set<BucketMember>): void {
    addAll(this.#unlabelled, found);
    if (this.#labelled.size === 0) {
      return;
    }
    const texts = labels();
    if (texts === undefined) {
      for (const members of this.#labelled.values()) {
        addAll(members, found);
      }
      return;
    }
    for (const label of texts) {
      addAll(this.#labelled.get(label) ?? [], found);
    }
  }
}

function addAll(members: Iterable<BucketMember>, found: Set<BucketMember>): void {
  for (const member of members) {
    found.add(member);
  }
}

/** A label as one text. Label keys contain no `=`, so the text is unambiguous. */
export function labelText(key: string, value: string): string {
  return `${key}=${value}`;
}

function labelsOf({ requiredObjectLabel }: BucketMember): readonly string[] {
  return requiredObjectLabel === undefined
    ? []
    : requiredObjectLabel.values.map((value) => labelText(requiredObjectLabel.key, value));
}

/** Index keys for a review. */
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
