import { splitResource } from '../../resources/index.ts';
import type { ReviewTarget } from '../admission-review.ts';
import type { BucketMember } from './bucket-member.ts';

/** What a review's policies are looked up by. */
export interface Lookup {
  /** See {@link keysFor}. */
  readonly keys: readonly string[];
  /**
   * See {@link labelText}: labels of the review's objects, built when they are asked for. Undefined when there are too many, or
   * policies may change them before the last was asked: then no label leaves a policy out.
   */
  readonly labels: () => ReadonlySet<string> | undefined;
}

/** Policies by the operations and resources that their rules name, and by a label that their objects must have. */
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

  /** Adds those that a lookup is for. */
  collect({ keys, labels }: Lookup, found: Set<BucketMember>): void {
    for (const key of keys) {
      this.#byKey.get(key)?.collect(labels, found);
    }
  }
}

/** Policies by a label that an object must have: see BucketMember.objectPin. */
class ByLabel {
  readonly #unlabelled = new Set<BucketMember>();
  readonly #labelled = new Map<string, Set<BucketMember>>();

  get isEmpty(): boolean {
    return this.#unlabelled.size === 0 && this.#labelled.size === 0;
  }

  add(member: BucketMember): void {
    if (member.objectPin === undefined) {
      this.#unlabelled.add(member);
    }
    for (const label of pinnedLabels(member)) {
      const members = this.#labelled.get(label) ?? new Set();
      this.#labelled.set(label, members);
      members.add(member);
    }
  }

  delete(member: BucketMember): void {
    this.#unlabelled.delete(member);
    for (const label of pinnedLabels(member)) {
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

/** A label as one text; keys of labels that policies look for hold no `=`. */
export function labelText(key: string, value: string): string {
  return `${key}=${value}`;
}

function pinnedLabels({ objectPin }: BucketMember): readonly string[] {
  return objectPin === undefined ? [] : objectPin.values.map((value) => labelText(objectPin.key, value));
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
