import { isInNamespace } from '../../resources/index.ts';
import type { BucketMember } from './bucket-member.ts';
import { keysFor, RuleIndex } from './rule-index.ts';
import type { Lookup } from './rule-index.ts';
import type { ReviewSubject } from './review-subject.ts';

/**
 * The policies of a bucket, indexed by operation, resource, namespace and required labels, so that the cost of a review
 * does not grow with policies that it does not match.
 */
export class Bucket {
  readonly #isMutating: boolean;
  readonly #members = new Map<string, BucketMember>();
  /** Policies of a namespace. */
  readonly #byNamespace = new Map<string, RuleIndex>();
  /** Cluster-wide policies that require a namespace label, by key and value. */
  readonly #byLabel = new Map<string, Map<string, RuleIndex>>();
  /** All policies that require a namespace label, for objects that no namespace selector excludes. */
  readonly #labelled = new RuleIndex();
  readonly #others = new RuleIndex();

  /** `isMutating`: policies may change the object's labels during the review. */
  constructor(isMutating: boolean) {
    this.#isMutating = isMutating;
  }

  get isEmpty(): boolean {
    return this.#members.size === 0;
  }

  /** Adds a policy, or replaces the one with the same id. */
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

  /** A superset of the policies that a review matches, in the order of their ids. */
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
    // When a namespace is written, mutating policies may change its labels.
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
        // The labels need a lookup: matching each policy does it.
        this.#labelled.collect(lookup, found);
      }
    }
  }

  #indexesOf({ match: { namespace }, requiredNamespaceLabel: label }: BucketMember): readonly RuleIndex[] {
    if (namespace !== undefined) {
      return [indexIn(this.#byNamespace, namespace)];
    }
    if (label === undefined) {
      return [this.#others];
    }
    const byValue = this.#byLabel.get(label.key) ?? new Map<string, RuleIndex>();
    this.#byLabel.set(label.key, byValue);
    return [this.#labelled, ...label.values.map((value) => indexIn(byValue, value))];
  }

  /** Removes empty indexes. */
  #prune({ match: { namespace }, requiredNamespaceLabel: label }: BucketMember): void {
    if (namespace !== undefined) {
      dropEmpty(this.#byNamespace, namespace);
    } else if (label !== undefined) {
      const byValue = this.#byLabel.get(label.key);
      for (const value of label.values) {
        dropEmpty(byValue, value);
      }
      if (byValue?.size === 0) {
        this.#byLabel.delete(label.key);
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
