import { isOwnBucket, podTemplatesBucket, usesAuthorizer } from '../../resources/index.ts';
import { conditionsProblem, MatchConditionEvaluator } from '../../resources/match-conditions/index.ts';
import type { PolicyMatch } from '../../resources/index.ts';
import type { LoadedPolicy, PolicyOptions } from '../loaded-policy.ts';
import { Bucket } from './bucket.ts';
import { bucketMember } from './bucket-member.ts';
import type { BucketMember } from './bucket-member.ts';
import type { ReviewSubject } from './review-subject.ts';

interface IndexedPolicy {
  readonly policy: LoadedPolicy;
  readonly match: PolicyMatch | undefined;
  /** Shared buckets that contain the policy. */
  readonly buckets: readonly string[];
  /** The policy in its own bucket; made on first use. */
  ownMember?: BucketMember;
}

/** The policies of one thread, by id and by bucket. */
export class PolicyTable {
  readonly options: PolicyOptions;
  /** Compiles the match conditions of all policies. */
  readonly conditions: MatchConditionEvaluator = new MatchConditionEvaluator(conditionsProblem);
  readonly #entries = new Map<string, IndexedPolicy>();
  readonly #buckets = new Map<string, Bucket>();

  constructor(options: PolicyOptions) {
    this.options = options;
  }

  /** How many policies there are. */
  get size(): number {
    return this.#entries.size;
  }

  /**
   * Adds a policy, or replaces the one with the same id. Without `match` it is found by id only. `alsoIn`: buckets of
   * other revisions of the policy. During a rollout, API servers may send reviews for the old bucket to a replica with
   * the new revision, and the reverse; the policy must be evaluated for both.
   */
  set(policy: LoadedPolicy, match?: PolicyMatch, alsoIn: readonly string[] = []): void {
    const { id } = policy;
    this.delete(id);
    if (match === undefined) {
      this.#entries.set(id, { policy, match, buckets: [] });
      return;
    }
    // An own bucket names its policy, so it needs no entry.
    const ofRequests = [...new Set([match.bucket, ...alsoIn])].filter((bucket) => !isOwnBucket(bucket));
    // Its reviews are matched as those of pods.
    const ofTemplates = match.podTemplates === undefined ? [] : [podTemplatesBucket(match)];
    this.#entries.set(id, { policy, match, buckets: [...ofRequests, ...ofTemplates] });
    for (const name of ofRequests) {
      this.#bucket(name).set(bucketMember(policy, match, name !== match.bucket));
    }
    for (const name of ofTemplates) {
      this.#bucket(name).set(bucketMember(policy, match, false));
    }
  }

  #bucket(name: string): Bucket {
    const bucket = this.#buckets.get(name) ?? new Bucket(name.startsWith('mutating'));
    this.#buckets.set(name, bucket);
    return bucket;
  }

  /** Returns whether the policy existed. */
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

  /** Whether a shared bucket contains any policy. */
  hasBucket(bucket: string): boolean {
    return this.#buckets.has(bucket);
  }

  /** The policy in its own bucket; undefined without match rules. */
  ownMember(id: string): BucketMember | undefined {
    const entry = this.#entries.get(id);
    if (entry?.match !== undefined && entry.ownMember === undefined) {
      const { policy, match } = entry;
      // Only API servers can check permissions of users.
      const matchConditions = match.matchConditions.filter(({ expression }) => !usesAuthorizer(expression));
      entry.ownMember = bucketMember(policy, { ...match, matchConditions }, true);
    }
    return entry?.ownMember;
  }

  /** A superset of the policies of a bucket that a review matches, in the order of their ids. */
  candidates(bucket: string, subject: ReviewSubject): readonly BucketMember[] {
    return this.#buckets.get(bucket)?.candidates(subject) ?? [];
  }
}
