import type { PolicyMatch } from '../../resources/index.ts';
import type { Review, ReviewTarget } from '../review/admission-review.ts';
import { applyPatch } from '../verdict/apply-patch.ts';
import { Evaluator, MATCH_CONDITIONS } from '../evaluator.ts';
import type { JudgeOptions, PolicyJudgement } from '../evaluator.ts';
import { isJsonObject } from '../values/json-text.ts';
import type { JsonValue } from '../values/json-text.ts';
import type { LoadedPolicy } from '../loaded-policy.ts';
import { policyOwner } from '../definition/policy-owner.ts';
import { countedUses } from '../exceptions/counted-uses.ts';
import { monitoredVerdict } from '../monitored-verdict.ts';
import type { MonitoredVerdict } from '../monitored-verdict.ts';
import { observe } from '../verdict/observation.ts';
import type { Judgement, Observation } from '../verdict/observation.ts';
import { NO_OBJECTS } from '../review/object-lookup.ts';
import type { ObjectLookup } from '../review/object-lookup.ts';
import { type PodTemplate, withPod } from '../pod-templates/pod-template.ts';
import { inTemplate, templateVerdict } from '../pod-templates/template-verdict.ts';
import { mutatedProblem } from '../verdict/verdict-limits.ts';
import { denied, guestFailed, ignored, patched } from '../verdict/verdict.ts';
import type { Verdict } from '../verdict/verdict.ts';
import type { BucketMember } from './bucket-member.ts';
import { matchMember, meetsConditions } from './member-match.ts';
import type { MemberMatch } from './member-match.ts';
import { mergeVerdicts } from './merged-verdict.ts';
import type { PolicyVerdict } from './merged-verdict.ts';
import { MutationOrder } from './mutation-order.ts';
import type { PolicyTable } from './policy-table.ts';
import { ReviewSubject } from './review-subject.ts';

export interface AdmitOptions extends Omit<JudgeOptions, 'leftMs'> {
  /** As in JudgeOptions, and owners of which all policies time out. */
  readonly timedOut?: ReadonlySet<string>;
  /** Objects that selectors and parameters of policies depend on. Default: there is no cluster. */
  readonly objects?: ObjectLookup;
  /** Owners whose policies are slow, see policyOwner. A review that matches a policy of one of them is deferred. */
  readonly slow?: ReadonlySet<string>;
  /** Whether the cost of a policy is unknown. A review that matches such a policy of a namespace is deferred, too. */
  readonly isUntried?: (policy: string) => boolean;
  /**
   * Milliseconds left for the review. Policies not evaluated by then time out. Default: only the limits of the
   * policies.
   */
  readonly deadlineMs?: number;
}

/** The review matches a policy of a slow owner, or an untried one. */
export class Deferred extends Error {
  readonly owner: string;

  constructor(owner: string) {
    super(`the policies of ${owner} may be slow`);
    this.owner = owner;
  }
}

const MS_PER_SECOND = 1_000;

/** A policy that the review matches, or for which the match failed with an error. */
interface MatchedPolicy {
  readonly policy: LoadedPolicy;
  readonly match: PolicyMatch | undefined;
  readonly result: Exclude<MemberMatch, 'no-match'>;
}

/** Evaluation of one review by the policies of a bucket. */
export class BucketReview {
  readonly observations: Observation[] = [];
  readonly #table: PolicyTable;
  readonly #bucket: string;
  /** The policy whose own bucket this is. */
  readonly #owner: string | undefined;
  readonly #options: AdmitOptions;
  readonly #deadline: number;
  /** In a bucket of pod templates: the one of the review, whose pod is the subject. */
  readonly #template: PodTemplate | undefined;
  /** By policy: one that is evaluated twice counts with its last verdict. Undefined without any. */
  #monitored: Map<string, MonitoredVerdict | undefined> | undefined;
  /** Undefined without any. */
  #uses: Set<string> | undefined;
  #subject: ReviewSubject;

  constructor(
    table: PolicyTable,
    parts: {
      readonly bucket: string;
      readonly owner: string | undefined;
      readonly review: Review;
      readonly target: ReviewTarget;
      readonly template: PodTemplate | undefined;
      readonly options: AdmitOptions;
    },
  ) {
    const { bucket, owner, review, target, template, options } = parts;
    this.#table = table;
    this.#bucket = bucket;
    this.#owner = owner;
    this.#options = options;
    this.#deadline = performance.now() + (options.deadlineMs ?? Infinity);
    this.#template = template;
    const objects = options.objects ?? NO_OBJECTS;
    const { pod } = template ?? {};
    this.#subject = new ReviewSubject(
      pod ?? review,
      pod?.target ?? target,
      owner === undefined ? objects : withoutWaiting(objects),
    );
  }

  /** Verdicts of policies in monitor mode that are not plain admissions. */
  monitored(): readonly MonitoredVerdict[] {
    return this.#monitored === undefined ? [] : [...this.#monitored.values()].filter((one) => one !== undefined);
  }

  /** Exceptions that the request uses, each once, see countedUses. */
  uses(): readonly string[] {
    return this.#uses === undefined ? [] : [...this.#uses];
  }

  /** @throws Deferred, UnknownObject. */
  verdict(): Verdict {
    if (this.#owner !== undefined) {
      return this.#evaluateOwner(this.#owner);
    }
    const members = this.#table.candidates(this.#bucket, this.#subject);
    if (this.#bucket.startsWith('mutating')) {
      return this.#mutate(members);
    }
    this.#deferEarly(members);
    const matched = members.flatMap((member) => this.#matched(member) ?? []);
    const answers = matched.map((one) => ({ id: one.policy.id, verdict: this.#evaluate(one) }));
    // Without patches: API servers reject patches from validating webhooks.
    return mergeVerdicts(answers);
  }

  /**
   * Evaluates the only policy of an own bucket. The API server has matched the review already, with facts that this
   * server lacks, such as the user's permissions. During a rollout its webhook may be that of another revision: a
   * review that this revision does not match is allowed, and a validating webhook gets no patch, even if this revision
   * mutates.
   */
  #evaluateOwner(id: string): Verdict {
    const policy = this.#table.get(id);
    if (policy === undefined) {
      throw new Error(`the policy ${id} is gone`);
    }
    const member = this.#table.ownMember(id);
    // An error is no reason to skip the policy: the API server had all facts to match.
    const isExcluded =
      member !== undefined &&
      (matchMember(member, this.#subject) === 'no-match' || this.#checkConditions(member) === 'no-match');
    if (isExcluded) {
      return mergeVerdicts([]);
    }
    const matched: MatchedPolicy = { policy, match: member?.match, result: 'matches' };
    this.#deferSlow(matched);
    const verdict = this.#evaluate(matched);
    const merged = mergeVerdicts([{ id, verdict }]);
    return this.#bucket.startsWith('validating') ? merged : withPatchOf(merged, verdict);
  }

  /**
   * Each policy gets the object as the previous one changed it. After a change, the policies that ran before are
   * evaluated once more, in order, as API servers do for webhooks with reinvocationPolicy IfNeeded. A denial ends the
   * evaluation.
   */
  #mutate(members: readonly BucketMember[]): Verdict {
    const original = this.#subject;
    this.#deferEarly(members);
    const order = new MutationOrder();
    const answers = new Map<string, PolicyVerdict>();
    let onlyChange: Verdict | undefined;
    for (const member of order.members(members)) {
      const matched = this.#matched(member);
      if (matched === undefined) {
        continue;
      }
      const { id } = member.policy;
      const before = this.#subject;
      const verdict = this.#evaluateAndPatch(matched);
      answers.set(id, { id, verdict });
      if (!verdict.allowed) {
        break;
      }
      if (this.#subject !== before) {
        onlyChange = before === original ? verdict : undefined;
        order.objectChanged();
      }
      order.evaluated(id);
    }
    const merged = mergeVerdicts([...answers.values()]);
    if (!merged.allowed || this.#subject === original) {
      return merged;
    }
    if (this.#template !== undefined) {
      return this.#withTemplateDifference(merged, this.#template);
    }
    return onlyChange === undefined ? this.#withDifference(merged, original.review) : withPatchOf(merged, onlyChange);
  }

  /** Adds the patch from the original object to the current one. */
  #withDifference(merged: Verdict, { object: before }: Review): Verdict {
    const { object: after } = this.#subject.review;
    return before === undefined || after === undefined ? merged : patched(merged, before, after);
  }

  /** Adds the patch of the workload from its original template to that of the current pod. */
  #withTemplateDifference(merged: Verdict, template: PodTemplate): Verdict {
    const { object: pod } = this.#subject.review;
    return isJsonObject(pod) ? patched(merged, template.workload, withPod(template, pod)) : merged;
  }

  /** Evaluates a policy and applies its patch. */
  #evaluateAndPatch(matched: MatchedPolicy): Verdict {
    let mutated: JsonValue | undefined;
    const verdict = this.#evaluate(matched, (judgement) => (mutated = judgement.mutatedObject));
    const { review } = this.#subject;
    if (!verdict.allowed || verdict.patch === undefined) {
      return verdict;
    }
    const object = mutated ?? (isJsonObject(review.object) ? applyPatch(verdict.patch, review.object) : undefined);
    if (!isJsonObject(object)) {
      return guestFailed('the policy made the object something that is not an object');
    }
    const problem = mutated === undefined ? mutatedProblem(object) : undefined;
    if (problem !== undefined) {
      return guestFailed(problem);
    }
    this.#subject = this.#subject.with(review.withObject(object));
    return verdict;
  }

  /**
   * Defers before match conditions of other policies are evaluated, because those take time. For policies of a slow
   * namespace, not even its own conditions are evaluated: an unnecessary deferral then delays only requests of that
   * namespace.
   */
  #deferEarly(members: readonly BucketMember[]): void {
    const { slow } = this.#options;
    if (slow === undefined) {
      return;
    }
    for (const member of members) {
      const { policy, match } = member;
      const owner = policyOwner(policy.id, match.namespace);
      if (!slow.has(owner)) {
        continue;
      }
      if (match.namespace === undefined) {
        this.#matched(member);
      } else if (matchMember(member, this.#subject) === 'matches') {
        throw new Deferred(owner);
      }
    }
  }

  /** Throws {@link Deferred} when the policy may be slow. */
  #matched(member: BucketMember): MatchedPolicy | undefined {
    const { policy, match } = member;
    let result = matchMember(member, this.#subject);
    if (result === 'matches') {
      result = this.#checkConditions(member);
    }
    if (result === 'no-match') {
      return undefined;
    }
    const matched = { policy, match, result };
    this.#deferSlow(matched);
    return matched;
  }

  /**
   * Evaluates match conditions within the review's deadline. They are reported as activity, because conditions of many
   * policies can take as long as a guest.
   */
  #checkConditions(member: BucketMember): MemberMatch {
    const { id } = member.policy;
    const { onUnitStart, onUnitEnd } = this.#options;
    if (member.match.matchConditions.length === 0) {
      return 'matches';
    }
    const leftMs = this.#deadline - performance.now();
    if (leftMs <= 0) {
      // The policy then times out.
      return 'matches';
    }
    onUnitStart?.(id, leftMs, MATCH_CONDITIONS);
    try {
      return meetsConditions(member, this.#subject, this.#table.conditions);
    } finally {
      onUnitEnd?.();
    }
  }

  #deferSlow({ policy, match, result }: MatchedPolicy): void {
    if (result !== 'matches') {
      return;
    }
    const { slow, isUntried } = this.#options;
    const owner = policyOwner(policy.id, match?.namespace);
    const isNew = match?.namespace !== undefined && isUntried?.(policy.id) === true;
    if (isNew || slow?.has(owner) === true) {
      throw new Deferred(owner);
    }
  }

  #evaluate({ policy, match, result }: MatchedPolicy, onJudgement?: (judgement: PolicyJudgement) => void): Verdict {
    const { review } = this.#subject;
    if (result !== 'matches') {
      return this.#failMatch(policy, match, result);
    }
    const evaluator = new Evaluator(policy.options);
    const judgement = evaluator.judge(policy, review, this.#judgeOptions(policy, match));
    onJudgement?.(judgement);
    this.#observe(policy, match, judgement);
    return this.#ofTemplate(evaluator.apply(policy, judgement), match);
  }

  #ofTemplate(verdict: Verdict, match: PolicyMatch | undefined): Verdict {
    return this.#template === undefined || match?.podTemplates === undefined
      ? verdict
      : templateVerdict(verdict, this.#template, match.podTemplates);
  }

  /** The match failed, so that the policy gives no verdict. */
  #failMatch(
    policy: LoadedPolicy,
    match: PolicyMatch | undefined,
    { error, code }: { readonly error: string; readonly code: number },
  ): Verdict {
    const verdict = denied({ message: error, code });
    this.#observe(policy, match, { outcome: 'failed', verdict });
    return this.#ofTemplate(match?.failurePolicy === 'Ignore' ? ignored(policy.id, error) : verdict, match);
  }

  #judgeOptions({ id }: LoadedPolicy, match: PolicyMatch | undefined): JudgeOptions {
    const webhookMs = (match?.timeoutSeconds ?? Infinity) * MS_PER_SECOND;
    const deadline = Math.min(this.#deadline, performance.now() + webhookMs);
    const { timedOut, onUnitStart, onUnitEnd, objects } = this.#options;
    return {
      ...(objects && { objects }),
      ...(timedOut && { timedOut: timedOut.has(policyOwner(id, match?.namespace)) ? new Set([id]) : timedOut }),
      ...(onUnitStart && { onUnitStart }),
      ...(onUnitEnd && { onUnitEnd }),
      leftMs: () => deadline - performance.now(),
      workload: this.#template?.review,
    };
  }

  #observe(policy: LoadedPolicy, match: PolicyMatch | undefined, judgement: Judgement): void {
    // Users know the workload, not the pod of its template.
    const review = this.#template?.review ?? this.#subject.review;
    const observed = this.#template === undefined ? policy : inTemplate(policy, match?.podTemplates);
    const observation = observe(observed, review, 'validate', judgement);
    this.observations.push(observation);
    if (judgement.used !== undefined) {
      this.#uses = new Set([...(this.#uses ?? []), ...countedUses(review, judgement)]);
    }
    if (policy.mode === 'monitor') {
      this.#monitored ??= new Map();
      this.#monitored.set(policy.id, monitoredVerdict(policy, review, judgement, observation));
    }
  }
}

/** For matching in own buckets: the API server has matched the selectors already, so that no review waits for labels. */
function withoutWaiting(objects: ObjectLookup): ObjectLookup {
  return {
    find: (object) => {
      const result = objects.find(object);
      return result.state === 'unknown' ? { state: 'unreadable', reason: 'this server does not have it' } : result;
    },
  };
}

function withPatchOf(merged: Verdict, { patch }: Verdict): Verdict {
  return patch === undefined ? merged : { ...merged, patch };
}
