import { isInNamespace } from '../../resources/index.ts';
import type { BucketMember } from './bucket-member.ts';
import { keysFor, RuleIndex } from './rule-index.ts';
import type { Lookup } from './rule-index.ts';
import type { ReviewSubject } from './review-subject.ts';

/**
 * The policies of a bucket. Found by operation, resource and namespace, and by labels that a namespace or an object must have,
 * so that a review costs no more for thousands of policies that are not meant.
 */
export class Bucket {
  readonly #isMutating: boolean;
  readonly #members = new Map<string, BucketMember>();
  /** Of policies that are in namespaces. */
  readonly #byNamespace = new Map<string, RuleIndex>();
  /** Of policies of the cluster that need a label, by its key and its value. */
  readonly #byLabel = new Map<string, Map<string, RuleIndex>>();
  /** All that need a label: selectors of namespaces leave out nothing that is in none. */
  readonly #labelled = new RuleIndex();
  readonly #others = new RuleIndex();

  /** `isMutating`: policies may change the object while they are asked. */
  constructor(isMutating: boolean) {
    this.#isMutating = isMutating;
  }

  get isEmpty(): boolean {
    return this.#members.size === 0;
  }

  /** Puts a policy in, in the place of that with the same id. */
  set(member: BucketMember): void {
    const { id } = member.policy;
    this.delete(id);
    this.#members.set(id, member);
    for (const index of this.#indexesOf(member)) {
      index.add(member);
    }
  }

  delete(id: string): void {
    const member = this.#members.get(id);
    if (member === undefined) {
      return;
    }
    this.#members.delete(id);
    for (const index of this.#indexesOf(member)) {
      index.delete(member);
    }
    this.#prune(member);
  }

  /** Policies that a review may be for, among them all that it is for, in the order of their ids. */
  candidates(subject: ReviewSubject): readonly BucketMember[] {
    const { target } = subject;
    const lookup = { keys: keysFor(target), labels: () => (this.#isMutating ? undefined : subject.objectLabelTexts()) };
    const found = new Set<BucketMember>();
    this.#others.collect(lookup, found);
    if (isInNamespace(target, target.resource)) {
      this.#byNamespace.get(target.namespace)?.collect(lookup, found);
    }
    if (!this.#labelled.isEmpty) {
      this.#collectLabelled(subject, lookup, found);
    }
    return found.size < 2 ? [...found] : [...found].toSorted((a, b) => (a.policy.id < b.policy.id ? -1 : 1));
  }

  #collectLabelled(subject: ReviewSubject, lookup: Lookup, found: Set<BucketMember>): void {
    // The labels of what is being written may be others once policies have changed it.
    if (!subject.isInSelectedNamespace || subject.writesNamespace) {
      this.#labelled.collect(lookup, found);
      return;
    }
    for (const [key, byValue] of this.#byLabel) {
      const values = subject.namespaceValues(key);
      for (const value of values ?? []) {
        byValue.get(value)?.collect(lookup, found);
      }
      if (values === undefined) {
        // The labels are not known: each says for itself what that means.
        this.#labelled.collect(lookup, found);
      }
    }
  }

  #indexesOf({ match: { namespace }, namespacePin: pin }: BucketMember): readonly RuleIndex[] {
    if (namespace !== undefined) {
      return [indexIn(this.#byNamespace, namespace)];
    }
    if (pin === undefined) {
      return [this.#others];
    }
    const byValue = this.#byLabel.get(pin.key) ?? new Map<string, RuleIndex>();
    this.#byLabel.set(pin.key, byValue);
    return [this.#labelled, ...pin.values.map((value) => indexIn(byValue, value))];
  }

  /** Leaves nothing behind of namespaces and labels that no policy names any more. */
  #prune({ match: { namespace }, namespacePin: pin }: BucketMember): void {
    if (namespace !== undefined) {
      dropEmpty(this.#byNamespace, namespace);
    } else if (pin !== undefined) {
      const byValue = this.#byLabel.get(pin.key);
      for (const value of pin.values) {
        dropEmpty(byValue, value);
      }
      if (byValue?.size === 0) {
        this.#byLabel.delete(pin.key);
      }
    }
  }
}

function indexIn(indexes: Map<string, RuleIndex>, key: string): RuleIndex {
  const index = indexes.get(key) ?? new RuleIndex();
  indexes.set(key, index);
  return index;
}

function dropEmpty(indexes: Map<string, RuleIndex> | undefined, key: string): void {
  if (indexes?.get(key)?.isEmpty === true) {
    indexes.delete(key);
  }
}
