// What one policy says about one object, with the reason and the time of each of its parts: for those who list verdicts by policy,
// where an admission review needs one answer of all policies.
import type { PolicyMode } from '../definition/policy-definition.ts';
import type { Review } from '../review/admission-review.ts';
import type { ReviewExclusion, ReviewMatcher } from './review-matcher.ts';
import { enforcedVerdict, Evaluator } from '../evaluator.ts';
import type { JudgeOptions, MemberResult } from '../evaluator.ts';
import type { LoadedPolicy } from '../loaded-policy.ts';
import { NO_OBJECTS, UnknownObject } from '../review/object-lookup.ts';
import { observe } from '../verdict/observation.ts';
import type { Judgement, Observation } from '../verdict/observation.ts';
import { type PodTemplate, podTemplateOf, writtenWorkload } from '../pod-templates/pod-template.ts';
import { templateVerdict } from '../pod-templates/template-verdict.ts';
import { boundedVerdict } from '../verdict/verdict-limits.ts';
import { allowed, denied } from '../verdict/verdict.ts';
import type { Verdict } from '../verdict/verdict.ts';

/** What one member of a group says about an object. */
export interface MemberVerdict {
  readonly name: string;
  /** `skipped`: the expression of the group did not need it. */
  readonly outcome: 'verdict' | 'failed' | 'timeout' | 'skipped';
  /** False without a verdict. */
  readonly allowed: boolean;
  readonly message?: string;
  /** Time in its code; absent when that did not run, or ended with its thread. Milliseconds. */
  readonly ms?: number;
}

/** What one policy says about an object. */
export interface ObjectVerdict {
  readonly policy: string;
  /** The verdict is the one of `protect` in both modes. */
  readonly mode: PolicyMode;
  /** `skipped`: the policy does not match the object. See Observation for the others. */
  readonly outcome: Observation['outcome'] | 'skipped';
  /** Whether the object may be as it is. True for a skipped policy, false for one without a verdict. */
  readonly allowed: boolean;
  readonly message?: string;
  readonly code?: number;
  /** Of a denial: the reason of its code, as in a Status of Kubernetes. Of a skipped policy: what excludes the object. */
  readonly reason?: StatusReason | ReviewExclusion;
  /** Never null: none are an empty list. */
  readonly warnings: readonly string[];
  /** Whether the policy would change the object. */
  readonly mutates: boolean;
  /** The change as a JSON patch; of a pod template, for its pod. */
  readonly patch?: string;
  /** With the outcome `excepted`: the exception, `namespace/name`. */
  readonly exception?: string;
  /** Of a group, in the order of its definition. */
  readonly members?: readonly MemberVerdict[];
  /** Time in its code; absent when that did not run, or ended with its thread. Milliseconds. */
  readonly ms?: number;
}

/** An ObjectVerdict with what metrics count; without a match, nothing is counted. */
export interface ObjectJudgement {
  readonly verdict: ObjectVerdict;
  readonly observation: Observation | undefined;
}

/** Options of {@link judgeObject}. */
export interface ObjectOptions extends Omit<JudgeOptions, 'leftMs' | 'onMember'> {
  /** Matches the policy's rules and selectors. Default: the policy matches every object. */
  readonly matcher?: ReviewMatcher | undefined;
}

type StatusReason = (typeof STATUS_REASONS)[keyof typeof STATUS_REASONS];

/** Reasons of a Status (`meta/v1`), by code. */
const STATUS_REASONS = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  413: 'RequestEntityTooLarge',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
} as const;

const INTERNAL_ERROR = 500;

/**
 * Judges an object by one policy, as its `validate` route would in mode `protect`.
 * @throws UnknownObject when an object is not known that the policy's match or its parameters depend on
 */
export function judgeObject(policy: LoadedPolicy, review: Review, options: ObjectOptions): ObjectJudgement {
  const { matcher, objects = NO_OBJECTS } = options;
  if (matcher === undefined) {
    return judgeById(policy, review, options);
  }
  const match = matcher.match(review, objects);
  if ('error' in match) {
    const verdict = denied({ message: match.error, code: INTERNAL_ERROR });
    return withVerdict(policy, review, { judged: { outcome: 'failed', verdict } });
  }
  if (!match.isMatch) {
    return { verdict: skipped(policy, match.excludedBy, match.detail), observation: undefined };
  }
  if (match.unchecked.includes('namespaceSelector')) {
    throw new UnknownObject({ apiVersion: 'v1', kind: 'Namespace', name: review.target?.namespace ?? '' });
  }
  return judge(policy, review, match.template, options);
}

/** A policy without rules judges every object; a workload without a template to check is allowed. */
function judgeById(policy: LoadedPolicy, review: Review, options: ObjectOptions): ObjectJudgement {
  const { target } = review;
  if (policy.podTemplates === undefined || target === undefined || writtenWorkload(target) === undefined) {
    return judge(policy, review, undefined, options);
  }
  const template = podTemplateOf(review, target);
  return template === undefined
    ? withVerdict(policy, review, { judged: { outcome: 'verdict', verdict: allowed() } })
    : judge(policy, review, template, options);
}

function judge(
  policy: LoadedPolicy,
  review: Review,
  template: PodTemplate | undefined,
  options: ObjectOptions,
): ObjectJudgement {
  const clock = new UnitClock(options);
  const evaluator = new Evaluator(policy.options);
  const judged = evaluator.judge(policy, template?.pod ?? review, { ...clock.options, workload: template?.review });
  const own = policy.kind === 'failed' ? judged.verdict : enforcedVerdict(policy, judged.verdict);
  const verdict = template === undefined ? own : templateVerdict(own, template, 'Enforce');
  const members = policy.kind === 'group' ? { members: clock.membersOf([...policy.members.keys()]) } : {};
  return withVerdict(policy, review, { judged, verdict, ...members, ms: clock.ms });
}

function withVerdict(
  policy: LoadedPolicy,
  review: Review,
  {
    judged,
    verdict = judged.verdict,
    members,
    ms,
  }: {
    readonly judged: Judgement;
    readonly verdict?: Verdict;
    readonly members?: readonly MemberVerdict[];
    readonly ms?: number | undefined;
  },
): ObjectJudgement {
  const { message, code, warnings, allowed: isAllowed } = boundedVerdict(verdict);
  return {
    verdict: {
      policy: policy.id,
      mode: policy.mode,
      outcome: judged.outcome,
      allowed: isAllowed,
      ...(message === undefined ? {} : { message }),
      ...(code === undefined ? {} : { code }),
      ...(isAllowed ? {} : reasonOf(judged.outcome, code)),
      warnings: warnings ?? [],
      mutates: judged.verdict.patch !== undefined,
      ...(judged.verdict.patch === undefined ? {} : { patch: judged.verdict.patch }),
      ...(judged.exception === undefined ? {} : { exception: judged.exception }),
      ...(members === undefined ? {} : { members }),
      ...(ms === undefined ? {} : { ms }),
    },
    observation: observe(policy, review, 'audit', judged),
  };
}

function skipped({ id, mode }: LoadedPolicy, reason: ReviewExclusion, message: string | undefined): ObjectVerdict {
  return {
    policy: id,
    mode,
    outcome: 'skipped',
    allowed: true,
    reason,
    ...(message === undefined ? {} : { message }),
    warnings: [],
    mutates: false,
  };
}

function reasonOf(outcome: Observation['outcome'], code: number | undefined): Pick<ObjectVerdict, 'reason'> {
  const reasons: Readonly<Record<number, StatusReason>> = STATUS_REASONS;
  const reason = outcome === 'timeout' ? 'Timeout' : code === undefined ? undefined : reasons[code];
  return reason === undefined ? {} : { reason };
}

/** Times the units of a policy, and keeps what members of a group say. */
class UnitClock {
  readonly options: JudgeOptions;
  /** Of all units together; undefined while none ran. */
  ms: number | undefined;
  readonly #members = new Map<string, MemberVerdict>();
  #startedAt = 0;
  /** Of the last unit. */
  #lastMs: number | undefined;

  constructor(options: ObjectOptions) {
    const { onUnitStart, onUnitEnd } = options;
    this.options = {
      ...options,
      onUnitStart: (...unit) => {
        this.#startedAt = performance.now();
        onUnitStart?.(...unit);
      },
      onUnitEnd: () => {
        onUnitEnd?.();
        this.#lastMs = performance.now() - this.#startedAt;
        this.ms = (this.ms ?? 0) + this.#lastMs;
      },
      onMember: (name, result) => {
        this.#members.set(name, memberVerdict(name, result, this.#lastMs));
        this.#lastMs = undefined;
      },
    };
  }

  membersOf(names: readonly string[]): readonly MemberVerdict[] {
    return names.map((name) => this.#members.get(name) ?? { name, outcome: 'skipped', allowed: false });
  }
}

function memberVerdict(
  name: string,
  { accepted, message, isTimeout }: MemberResult,
  ms: number | undefined,
): MemberVerdict {
  return {
    name,
    outcome: isTimeout ? 'timeout' : accepted === undefined ? 'failed' : 'verdict',
    allowed: accepted === true,
    ...(message === undefined ? {} : { message }),
    ...(ms === undefined ? {} : { ms }),
  };
}
