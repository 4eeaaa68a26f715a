import { asksAuthorizer, isOwnBucket, MatchConditions } from '../../resources/index.ts';
import type { PolicyMatch } from '../../resources/index.ts';
import type { LoadedPolicy, PolicyOptions } from '../loaded-policy.ts';
import { Bucket } from './bucket.ts';
import { bucketMember } from './bucket-member.ts';
import type { BucketMember } from './bucket-member.ts';
import { NamespaceLabels } from './namespace-labels.ts';
import type { ReviewSubject } from './review-subject.ts';

interface TableEntry {
  readonly policy: LoadedPolicy;
  readonly match: PolicyMatch | undefined;
  /** Where it is a member. */
  readonly buckets: readonly string[];
  /** As it is asked in a webhook of its own; made when it first is. */
  alone?: BucketMember;
}

/** The policies of one thread, by id and by the buckets in which API servers ask about them. */
export class PolicyTable {
  readonly options: PolicyOptions;
  readonly namespaces: NamespaceLabels = new NamespaceLabels();
  /** Compiles the match conditions of all policies. */
  readonly conditions: MatchConditions = new MatchConditions();
  readonly #entries = new Map<string, TableEntry>();
  readonly #buckets = new Map<string, Bucket>();

  /** `options`: the port is asked for namespaces that are not known; always accepted is the namespace that they name. */
  constructor(options: PolicyOptions) {
    this.options = options;
  }

  /** How many policies there are. */
  get size(): number {
    return this.#entries.size;
  }

  /**
   * Puts a policy in, in the place of that with the same id. One without `match` is only asked for by its id. `alsoIn`: buckets
   * of other revisions of the policy that may be serving elsewhere at the moment. While replicas change one after the other, an
   * API server may ask one that has changed about the old bucket and one that has not about the new one; both must answer for
   * the policy.
   */
  set(policy: LoadedPolicy, match?: PolicyMatch, alsoIn: readonly string[] = []): void {
    const { id } = policy;
    this.delete(id);
    if (match === undefined) {
      this.#entries.set(id, { policy, match, buckets: [] });
      return;
    }
    // A webhook of its own names the policy that it asks for.
    const buckets = [...new Set([match.bucket, ...alsoIn])].filter((bucket) => !isOwnBucket(bucket));
    this.#entries.set(id, { policy, match, buckets });
    for (const name of buckets) {
      const bucket = this.#buckets.get(name) ?? new Bucket(name.startsWith('mutating'));
      this.#buckets.set(name, bucket);
      bucket.set(bucketMember(policy, match, name !== match.bucket));
    }
  }

  /** Whether there was one. */
  delete(id: string): boolean {
    for (const name of this.#entries.get(id)?.buckets ?? []) {
      const bucket = this.#buckets.get(name);
      bucket?.delete(id);
      if (bucket?.isEmpty === true) {
        this.#buckets.delete(name);
      }
    }
    return this.#entries.delete(id);
  }

  get(id: string): LoadedPolicy | undefined {
    return this.#entries.get(id)?.policy;
  }

  /** Whether any policy is in a bucket that policies may share. */
  hasBucket(bucket: string): boolean {
    return this.#buckets.has(bucket);
  }

  /** A policy as it is asked in a webhook of its own, which may be that of another revision; if it was said what it is for. */
  aloneOf(id: string): BucketMember | undefined {
    const entry = this.#entries.get(id);
    if (entry?.match !== undefined && entry.alone === undefined) {
      const { policy, match } = entry;
      // What users may do only API servers know.
      const matchConditions = match.matchConditions.filter(({ expression }) => !asksAuthorizer(expression));
      entry.alone = bucketMember(policy, { ...match, matchConditions }, true);
    }
    return entry?.alone;
  }

  /** Policies of a bucket that a review may be for, among them all that it is for, in the order of their ids. */
  candidates(bucket: string, subject: ReviewSubject): readonly BucketMember[] {
    return this.#buckets.get(bucket)?.candidates(subject) ?? [];
  }
}
