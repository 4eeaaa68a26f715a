import { applyJsonPatch, PatchError } from '../../resources/index.ts';
import type { PolicyMatch } from '../../resources/index.ts';
import type { Review, ReviewTarget } from '../admission-review.ts';
import { Evaluator, MATCH_CONDITIONS } from '../evaluator.ts';
import type { Asking, PolicyJudgement } from '../evaluator.ts';
import { isJsonObject } from '../json-text.ts';
import type { HostPort } from '../host-port.ts';
import type { JsonObject, JsonValue } from '../json-text.ts';
import type { LoadedPolicy } from '../loaded-policy.ts';
import { observe } from '../observation.ts';
import type { Judgement, Observation } from '../observation.ts';
import { denied, guestFailed, ignored, patched } from '../verdict.ts';
import type { Verdict } from '../verdict.ts';
import type { BucketMember } from './bucket-member.ts';
import { matchMember, meetsConditions } from './member-match.ts';
import type { MemberMatch } from './member-match.ts';
import { mergeVerdicts } from './merged-verdict.ts';
import type { PolicyVerdict } from './merged-verdict.ts';
import { MutationRounds } from './mutation-rounds.ts';
import { NamespaceLookup } from './namespace-lookup.ts';
import type { PolicyTable } from './policy-table.ts';
import { ReviewSubject } from './review-subject.ts';
import { parseJson } from '../../values/index.ts';

export interface AdmitOptions extends Omit<Asking, 'leftMs'> {
  /** Ids of policies that are not evaluated now: a review that one of them is for is deferred. */
  readonly slow?: ReadonlySet<string>;
  /**
   * Milliseconds that are left for the review. Policies that have not been evaluated then answer as timed out. Default: no
   * limit but those of the policies.
   */
  readonly deadlineMs?: number;
}

/** The review is for a slow policy. */
export class Deferred extends Error {}

const MS_PER_SECOND = 1_000;

/** Where an API server has looked at the namespace already, nobody is asked about it once more. */
const NOBODY: HostPort = {
  request: () => {
    throw new Error('nobody is asked');
  },
};

/** A policy to be asked, or to be answered for. */
interface Asked {
  readonly policy: LoadedPolicy;
  readonly match: PolicyMatch | undefined;
  readonly matching: Exclude<MemberMatch, 'other'>;
}

/** One review of a bucket. */
export class BucketReview {
  readonly observations: Observation[] = [];
  readonly #table: PolicyTable;
  readonly #bucket: string;
  /** The id of the policy that the bucket is of alone. */
  readonly #owner: string | undefined;
  readonly #options: AdmitOptions;
  readonly #deadline: number;
  #subject: ReviewSubject;

  constructor(
    table: PolicyTable,
    parts: {
      readonly bucket: string;
      readonly owner: string | undefined;
      readonly review: Review;
      readonly target: ReviewTarget;
      readonly options: AdmitOptions;
    },
  ) {
    const { bucket, owner, review, target, options } = parts;
    this.#table = table;
    this.#bucket = bucket;
    this.#owner = owner;
    this.#options = options;
    this.#deadline = performance.now() + (options.deadlineMs ?? Infinity);
    const namespaces = new NamespaceLookup(table.namespaces, owner === undefined ? table.options.port : NOBODY);
    this.#subject = new ReviewSubject(review, target, namespaces);
  }

  /** Throws {@link Deferred}. */
  verdict(): Verdict {
    if (this.#owner !== undefined) {
      return this.#judgeAlone(this.#owner);
    }
    const members = this.#table.candidates(this.#bucket, this.#subject);
    if (this.#bucket.startsWith('mutating')) {
      return this.#mutate(members);
    }
    this.#deferEarly(members);
    const asked = members.flatMap((member) => this.#meant(member) ?? []);
    const answers = asked.map((one) => ({ id: one.policy.id, verdict: this.#ask(one) }));
    // Without patches: API servers refuse answers of validating webhooks that have one.
    return mergeVerdicts(answers);
  }

  /**
   * For the webhook that is the policy's own: the API server has looked at everything, and knew more. But it asks what another
   * revision is for, too, while that one is on its way or not yet gone: this one does not judge what it was not made for, and
   * changes nothing for a validating webhook, which may be that of a revision that did not mutate.
   */
  #judgeAlone(id: string): Verdict {
    const policy = this.#table.get(id);
    if (policy === undefined) {
      throw new Error(`the policy ${id} is gone`);
    }
    const member = this.#table.aloneOf(id);
    // What the server cannot tell the API server could.
    const isOther =
      member !== undefined && (matchMember(member, this.#subject) === 'other' || this.#meets(member) === 'other');
    if (isOther) {
      return mergeVerdicts([]);
    }
    const asked: Asked = { policy, match: member?.match, matching: 'matches' };
    this.#deferSlow(asked);
    const verdict = this.#ask(asked);
    const merged = mergeVerdicts([{ id, verdict }]);
    return this.#bucket.startsWith('validating') ? merged : withPatchOf(merged, verdict);
  }

  /**
   * Each policy sees the object as the last left it. When one changed it, those that were asked before are asked once more, in
   * order, as API servers do with webhooks whose reinvocationPolicy is IfNeeded. A denial ends it.
   */
  #mutate(members: readonly BucketMember[]): Verdict {
    const original = this.#subject;
    this.#deferEarly(members);
    const rounds = new MutationRounds();
    const answers = new Map<string, PolicyVerdict>();
    let onlyChange: Verdict | undefined;
    for (const member of rounds.of(members)) {
      const asked = this.#meant(member);
      if (asked === undefined) {
        continue;
      }
      const { id } = member.policy;
      const before = this.#subject;
      const verdict = this.#change(asked);
      answers.set(id, { id, verdict });
      if (!verdict.allowed) {
        break;
      }
      if (this.#subject !== before) {
        onlyChange = before === original ? verdict : undefined;
        rounds.changed();
      }
      rounds.asked(id);
    }
    const merged = mergeVerdicts([...answers.values()]);
    if (!merged.allowed || this.#subject === original) {
      return merged;
    }
    return onlyChange === undefined ? this.#withDifference(merged, original.review) : withPatchOf(merged, onlyChange);
  }

  /** With the patch that makes the object what it is now. */
  #withDifference(merged: Verdict, { object: before }: Review): Verdict {
    const { object: after } = this.#subject.review;
    return before === undefined || after === undefined ? merged : patched(merged, before, after);
  }

  /** Asks a policy, and makes the object what it wants. */
  #change(asked: Asked): Verdict {
    let wanted: JsonValue | undefined;
    const verdict = this.#ask(asked, (judgement) => (wanted = judgement.mutatedObject));
    const { review } = this.#subject;
    if (!verdict.allowed || verdict.patch === undefined) {
      return verdict;
    }
    const object = wanted ?? (isJsonObject(review.object) ? applied(verdict.patch, review.object) : undefined);
    if (!isJsonObject(object)) {
      return guestFailed('the policy made something of the object that is none');
    }
    this.#subject = this.#subject.with(review.withObject(object));
    return verdict;
  }

  /**
   * Before the conditions of others are looked at, which takes time. Not even those of a slow policy are where all of the
   * bucket are of one namespace: nobody else waits for what may be deferred too often then.
   */
  #deferEarly(members: readonly BucketMember[]): void {
    for (const member of members) {
      const { policy, match } = member;
      if (this.#options.slow?.has(policy.id) !== true) {
        continue;
      }
      if (match.namespace === undefined) {
        this.#meant(member);
      } else if (matchMember(member, this.#subject) === 'matches') {
        throw new Deferred();
      }
    }
  }

  /** Throws {@link Deferred} when it is slow. */
  #meant(member: BucketMember): Asked | undefined {
    const { policy, match } = member;
    let matching = matchMember(member, this.#subject);
    if (matching === 'matches') {
      matching = this.#meets(member);
    }
    if (matching === 'other') {
      return undefined;
    }
    const asked = { policy, match, matching };
    this.#deferSlow(asked);
    return asked;
  }

  /** Conditions of many policies can take as long as anything else: they have what time there is, and are told of. */
  #meets(member: BucketMember): MemberMatch {
    const { id } = member.policy;
    const { entering, leaving } = this.#options;
    if (member.match.matchConditions.length === 0) {
      return 'matches';
    }
    const leftMs = this.#deadline - performance.now();
    if (leftMs <= 0) {
      // It will answer as timed out.
      return 'matches';
    }
    entering?.(id, leftMs, MATCH_CONDITIONS);
    try {
      return meetsConditions(member, this.#subject, this.#table.conditions);
    } finally {
      leaving?.();
    }
  }

  #deferSlow({ policy, matching }: Asked): void {
    if (matching === 'matches' && this.#options.slow?.has(policy.id) === true) {
      throw new Deferred();
    }
  }

  #ask({ policy, match, matching }: Asked, heard?: (judgement: PolicyJudgement) => void): Verdict {
    const { review } = this.#subject;
    if (matching !== 'matches') {
      return this.#answerUnknown(policy, match, matching);
    }
    const evaluator = new Evaluator(policy.options);
    const judgement = evaluator.judge(policy, review, this.#asking(match));
    heard?.(judgement);
    this.#note(policy, judgement);
    return evaluator.apply(policy, review, judgement);
  }

  /** Nobody can tell whether the policy is for the review: as if it gave no verdict. */
  #answerUnknown(
    policy: LoadedPolicy,
    match: PolicyMatch | undefined,
    { error, code }: { readonly error: string; readonly code: number },
  ): Verdict {
    const verdict = denied({ message: error, code });
    this.#note(policy, { outcome: 'failed', verdict });
    return match?.failurePolicy === 'Ignore' ? ignored(policy.id, error) : verdict;
  }

  #asking(match: PolicyMatch | undefined): Asking {
    const webhookMs = (match?.timeoutSeconds ?? Infinity) * MS_PER_SECOND;
    const deadline = Math.min(this.#deadline, performance.now() + webhookMs);
    const { timedOut, entering, leaving } = this.#options;
    return {
      ...(timedOut && { timedOut }),
      ...(entering && { entering }),
      ...(leaving && { leaving }),
      leftMs: () => deadline - performance.now(),
    };
  }

  #note(policy: LoadedPolicy, judgement: Judgement): void {
    this.observations.push(observe(policy, this.#subject.review, 'validate', judgement));
  }
}

/** The object that a patch makes of one; undefined when it does not apply. */
function applied(patch: string, object: JsonObject): JsonValue | undefined {
  try {
    const operations = parseJson(patch) as readonly JsonValue[];
    return applyJsonPatch(object, operations);
  } catch (error) {
    if (error instanceof PatchError) {
      return undefined;
    }
    throw error;
  }
}

function withPatchOf(merged: Verdict, { patch }: Verdict): Verdict {
  return patch === undefined ? merged : { ...merged, patch };
}
