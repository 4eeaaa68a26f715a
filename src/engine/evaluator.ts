import type { ExecutionMode } from '../modules/index.ts';
import type { CallContext, CallLimits } from '../wasm/index.ts';
import { errorText } from '../values/index.ts';
import type { Review } from './review/admission-review.ts';
import { EngineError } from './values/errors.ts';
import { evaluateGroupExpression } from './definition/group-expression.ts';
import { HostCapabilities } from './host-capabilities.ts';
import type { PolicyLog } from './capabilities/host-port.ts';
import { EXPIRING_SOON_MS } from '../resources/index.ts';
import type { Exception } from './exceptions/exception.ts';
import type { ExceptionTable } from './exceptions/exception-table.ts';
import { type Excepted, matchingExceptions } from './exceptions/matching-exceptions.ts';
import type { JsonValue } from './values/json-text.ts';
import { NO_OBJECTS, UnknownObject } from './review/object-lookup.ts';
import type { ObjectLookup } from './review/object-lookup.ts';
import { endsWithNamespace } from './parameters/ending-object.ts';
import type { EffectiveSettings, SettingsResult } from './parameters/effective-settings.ts';
import type { ValidationBudget } from './parameters/validation-budget.ts';
import { unitsOf } from './loaded-policy.ts';
import type {
  EvaluationUnit,
  LoadedPolicy,
  LoadedPolicyGroup,
  LoadedSinglePolicy,
  PolicyOptions,
} from './loaded-policy.ts';
import type { Judgement } from './verdict/observation.ts';
import {
  allowed,
  denied,
  errored,
  excepted,
  fromGuest,
  groupDenied,
  guestFailed,
  ignored,
  MEMBER_MUTATION_MESSAGE,
  monitored,
  timedOut,
  TIMEOUT_MESSAGE,
  withMessage,
  withoutForbiddenPatch,
} from './verdict/verdict.ts';
import type { Verdict } from './verdict/verdict.ts';
import { DEFAULT_TIMEOUT_SECONDS, MAX_REVIEW_BYTES } from './definition/limits.ts';
import type { GuestVerdict, SettingsVerdict } from './verdict/guest-verdict.ts';
import { boundedAnswer, boundedText } from './verdict/verdict-limits.ts';

/**
 * Fuel for one second of evaluation, measured with guests in Rust and AssemblyScript (waPC) and Rego: 2 × 10⁹. Code of
 * the Go compiler uses 20 to 45 × 10⁹, because its functions are loops around one big switch. An empty loop uses 7 ×
 * 10⁹, so it ends earlier. The deadline by wall clock limits what fuel does not.
 */
export const FUEL_PER_SECOND: Readonly<Record<ExecutionMode, number>> = {
  'kubewarden-wapc': 2e9,
  opa: 2e9,
  gatekeeper: 2e9,
  wasi: 20e9,
};
/** Maximum size of a guest's answer, which may contain the object of the largest review. */
export const MAX_ANSWER_BYTES = MAX_REVIEW_BYTES;

const MS_PER_SECOND = 1_000;
/** Of the timeout of a policy, for validating the settings of a namespace: the rest is for the evaluation. */
const VALIDATION_SHARE = 0.5;

/** In the place of a member's position: match conditions are evaluated, not a guest. */
export const MATCH_CONDITIONS = -2;

/**
 * Called before a guest starts or match conditions are evaluated. `id` is that of the policy or `group/member`,
 * `timeoutMs` the time limit, and `member` the position in the group, -1 outside of groups, or {@link
 * MATCH_CONDITIONS}.
 */
export type OnUnitStart = (id: string, timeoutMs: number, member: number) => void;

/** Options for the evaluation of one review. */
export interface JudgeOptions {
  /** Ids of policies, groups and members (`group/member`) that time out without being run. */
  readonly timedOut?: ReadonlySet<string>;
  /** Called before a guest starts. */
  readonly onUnitStart?: OnUnitStart;
  /** Called when the guest has ended, successfully or not. */
  readonly onUnitEnd?: () => void;
  /** Called with what a member of a group says, once for each that is evaluated. */
  readonly onMember?: (name: string, result: MemberResult) => void;
  /** Milliseconds left for the review. Default: only the policy's own limit. */
  readonly leftMs?: () => number;
  /** Parameters of policies. Default: there is no cluster. */
  readonly objects?: ObjectLookup;
  /** The workload whose pod template is judged: exceptions for it apply, too. */
  readonly workload?: Review | undefined;
  /** The instant that exceptions are asked for, in milliseconds since 1970. Default: now. */
  readonly now?: number;
}

/** A policy, or a member of a group, that refuses the requests of a namespace for their parameters. */
export interface RefusedUnit {
  /** The id of the policy, or `group/member`. */
  readonly unit: string;
  readonly message: string;
  /** Whether there are no parameters, and `notFound` is `Deny`. */
  readonly isMissing: boolean;
}

/** A judgement with the mutated object. */
export interface PolicyJudgement extends Judgement {
  readonly mutatedObject?: JsonValue;
}

/** Result of one guest call. */
type UnitResult =
  | { readonly kind: 'verdict'; readonly verdict: GuestVerdict }
  | { readonly kind: 'failed'; readonly message: string }
  /** Missing or invalid parameters. */
  | { readonly kind: 'refused'; readonly message: string }
  /** The same, for a request that only {@link endsWithNamespace}. */
  | { readonly kind: 'ending'; readonly message: string }
  | { readonly kind: 'timeout' };

/** Evaluates policies and applies their settings to the verdicts. One instance serves all policies of a thread. */
export class Evaluator {
  readonly #capabilities: HostCapabilities;
  readonly #log: PolicyLog;
  readonly #alwaysAcceptNamespace: string | undefined;
  readonly #validationBudget: ValidationBudget | undefined;
  readonly #exceptions: ExceptionTable | undefined;

  constructor({ port, log, alwaysAcceptNamespace, validationBudget, exceptions }: PolicyOptions) {
    this.#capabilities = new HostCapabilities(port, log);
    this.#log = log;
    this.#alwaysAcceptNamespace = alwaysAcceptNamespace;
    this.#validationBudget = validationBudget;
    this.#exceptions = exceptions;
  }

  checkSettings(policy: LoadedPolicy, onUnitStart?: OnUnitStart): SettingsVerdict {
    const isGroup = policy.kind === 'group';
    const problems: string[] = [];
    for (const [index, unit] of unitsOf(policy).entries()) {
      const timeoutMs = unit.timeoutSeconds * MS_PER_SECOND;
      const context = (): CallContext => this.#capabilities.context(unit, limitsOf(unit), { timeoutMs });
      onUnitStart?.(unit.id, timeoutMs, isGroup ? index : -1);
      unit.guest.checkProtocol(context());
      const verdict = checkUnit(unit, () => unit.guest.validateSettings(unit.settingsJson, context()));
      if (!verdict.valid) {
        const message = boundedText(verdict.message);
        problems.push(isGroup ? `${unit.id}: ${message}` : message);
      }
    }
    return problems.length === 0 ? { valid: true } : { valid: false, message: problems.join('; ') };
  }

  /** See refusedParameters of the engine. */
  refusedParameters(
    policy: LoadedPolicy,
    namespace: string,
    objects: ObjectLookup,
    onUnitStart?: OnUnitStart,
  ): readonly RefusedUnit[] {
    const isGroup = policy.kind === 'group';
    return unitsOf(policy).flatMap((unit, index) => {
      const timeoutMs = unit.timeoutSeconds * MS_PER_SECOND;
      onUnitStart?.(unit.id, timeoutMs, isGroup ? index : -1);
      const refused = this.#refusal(unit, namespace, objects, timeoutMs);
      return refused === undefined ? [] : [{ unit: unit.id, ...refused }];
    });
  }

  #refusal(
    unit: EvaluationUnit,
    namespace: string,
    objects: ObjectLookup,
    timeoutMs: number,
  ): Omit<RefusedUnit, 'unit'> | undefined {
    try {
      const settings = this.#settings(unit, namespace, objects, timeoutMs);
      return settings.kind === 'refused'
        ? { message: settings.message, isMissing: settings.isMissing === true }
        : undefined;
    } catch (error) {
      return error instanceof UnknownObject ? undefined : { message: errorText(error), isMissing: false };
    }
  }

  /**
   * A policy's own verdict, which `/audit` returns; with an exception from what it would reject or change.
   * @throws UnknownObject
   */
  judge(policy: LoadedPolicy, review: Review, options: JudgeOptions): PolicyJudgement {
    const judgement = this.#judge(policy, review, options);
    const { allowed: isAllowed, patch } = judgement.verdict;
    // Asked last, so that what passes costs nothing.
    return isAllowed && patch === undefined ? judgement : this.#withExceptions(policy, review, options, judgement);
  }

  #withExceptions(
    policy: LoadedPolicy,
    review: Review,
    options: JudgeOptions,
    judgement: PolicyJudgement,
  ): PolicyJudgement {
    const { workload, now = Date.now(), timedOut: late } = options;
    const candidates = this.#exceptions?.of(policy.id, review.admission?.namespace ?? '', now) ?? [];
    if (candidates.length === 0) {
      return judgement;
    }
    const isLate = late?.has(policy.id) === true;
    const reviews = workload === undefined ? [review] : [workload, review];
    const { whole, members } = this.#matching(policy, candidates, reviews, isLate, options);
    if (whole !== undefined) {
      return exceptedBy(whole, [whole], now);
    }
    if (members.size === 0 || policy.kind !== 'group' || isLate) {
      return judgement;
    }
    const used = new Set<Exception>();
    const rest = this.#judgeGroup(policy, review, options, (member) => {
      const exception = members.get(member);
      return exception !== undefined && used.add(exception).size > 0;
    });
    const [first] = used;
    return rest.verdict.allowed && first !== undefined ? exceptedBy(first, [...used], now) : rest;
  }

  /** Their conditions take time of the policy, which is published as its match conditions are. */
  #matching(
    policy: LoadedPolicy,
    candidates: readonly Exception[],
    reviews: readonly Review[],
    isLate: boolean,
    { onUnitStart, onUnitEnd, leftMs }: JudgeOptions,
  ): Excepted {
    const timeoutSeconds = unitsOf(policy)[0]?.timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS;
    const timeoutMs = Math.min(timeoutSeconds * MS_PER_SECOND, leftMs?.() ?? Infinity);
    if (isLate || timeoutMs <= 0 || !candidates.some(({ hasConditions }) => hasConditions)) {
      return matchingExceptions(policy.id, candidates, reviews, false);
    }
    onUnitStart?.(policy.id, timeoutMs, MATCH_CONDITIONS);
    try {
      return matchingExceptions(policy.id, candidates, reviews, true);
    } finally {
      onUnitEnd?.();
    }
  }

  #judge(policy: LoadedPolicy, review: Review, options: JudgeOptions): PolicyJudgement {
    const namespace = review.admission?.namespace;
    if (namespace !== undefined && namespace === this.#alwaysAcceptNamespace) {
      return { outcome: 'exempt', verdict: allowed() };
    }
    if (policy.kind === 'failed') {
      return { outcome: 'not-initialized', verdict: errored(policy.message) };
    }
    if (options.timedOut?.has(policy.id) === true) {
      return { outcome: 'timeout', verdict: timedOut() };
    }
    if (policy.kind === 'group') {
      return this.#judgeGroup(policy, review, options);
    }
    const result = this.#call(policy.unit, review, options, -1);
    if (result.kind === 'timeout') {
      return { outcome: 'timeout', verdict: timedOut() };
    }
    if (result.kind === 'failed') {
      return { outcome: 'failed', verdict: guestFailed(result.message) };
    }
    if (result.kind === 'refused') {
      return { outcome: 'failed', verdict: denied({ message: result.message }) };
    }
    if (result.kind === 'ending') {
      return { outcome: 'verdict', verdict: allowed() };
    }
    const { mutatedObject } = result.verdict;
    const verdict = fromGuest(review, result.verdict);
    return { outcome: 'verdict', verdict, ...(mutatedObject === undefined ? {} : { mutatedObject }) };
  }

  /** @param isFulfilled asked about each member that the expression needs: whether an exception applies */
  #judgeGroup(
    group: LoadedPolicyGroup,
    review: Review,
    options: JudgeOptions,
    isFulfilled: (member: string) => boolean = () => false,
  ): PolicyJudgement {
    const results = new Map<string, MemberResult>();
    const order = [...group.members.keys()];
    const isTrue = evaluateGroupExpression(group.expression, (name) => {
      const known = results.get(name);
      if (known !== undefined) {
        return known.accepted;
      }
      if (isFulfilled(name)) {
        return true;
      }
      const unit = group.members.get(name);
      if (unit === undefined) {
        return undefined;
      }
      const result = memberResult(review, this.#call(unit, review, options, order.indexOf(name)));
      results.set(name, result);
      options.onMember?.(name, result);
      return result.accepted;
    });
    const failures = [...results.values()].filter(({ accepted }) => accepted === undefined);
    const isEnding = isTrue === undefined && failures.every((one) => one.isEnding === true);
    if (isTrue === true || isEnding) {
      return { outcome: 'verdict', verdict: allowed() };
    }
    const causes = [...results]
      .filter(([, { accepted }]) => accepted !== true)
      .map(([member, { message }]) => ({ member, message }));
    const isFailure = isTrue === undefined;
    const outcome = !isFailure ? 'verdict' : failures.every(({ isTimeout }) => isTimeout) ? 'timeout' : 'failed';
    return { outcome, verdict: groupDenied(group.message, causes, isFailure) };
  }

  #call(unit: EvaluationUnit, review: Review, options: JudgeOptions, member: number): UnitResult {
    if (options.timedOut?.has(unit.id) === true) {
      return { kind: 'timeout' };
    }
    const timeoutMs = Math.min(unit.timeoutSeconds * MS_PER_SECOND, options.leftMs?.() ?? Infinity);
    if (timeoutMs <= 0) {
      this.#logFailed(unit, review, 'the policy timed out', 'no time was left for it');
      return { kind: 'timeout' };
    }
    options.onUnitStart?.(unit.id, timeoutMs, member);
    try {
      const { guest } = unit;
      const namespace = review.target?.namespace ?? '';
      const objects = options.objects ?? NO_OBJECTS;
      const settings = this.#settings(unit, namespace, objects, timeoutMs);
      if (settings.kind === 'allowed') {
        return { kind: 'verdict', verdict: ADMITTED };
      }
      if (settings.kind === 'refused') {
        const { message, isOfNamespace = false } = settings;
        return { kind: isOfNamespace && endsWithNamespace(review, objects) ? 'ending' : 'refused', message };
      }
      const inventoryJson =
        guest.mode === 'opa' || guest.mode === 'gatekeeper'
          ? this.#capabilities.inventory(unit, guest.mode)
          : undefined;
      const input = {
        requestJson: review.requestJson,
        settingsJson: settings.settingsJson,
        isRaw: review.admission === undefined,
        ...(inventoryJson === undefined ? {} : { inventoryJson }),
      };
      const context = this.#capabilities.context(unit, limitsOf(unit, timeoutMs), { timeoutMs, review });
      const { lacksParameters = false, ...verdict } = guest.validate(input, context);
      return lacksParameters && endsWithNamespace(review, objects)
        ? { kind: 'ending', message: verdict.message ?? '' }
        : { kind: 'verdict', verdict: boundedAnswer(verdict) };
    } catch (error) {
      if (error instanceof UnknownObject) {
        throw error;
      }
      const isTimeout = error instanceof EngineError && error.code === 'guest-timeout';
      const message = boundedText(errorText(error));
      this.#logFailed(unit, review, isTimeout ? 'the policy timed out' : 'the policy failed', message);
      return isTimeout ? { kind: 'timeout' } : { kind: 'failed', message };
    } finally {
      options.onUnitEnd?.();
    }
  }

  /** The settings for the request, which the guest has found valid. @throws UnknownObject, EngineError */
  #settings(unit: EvaluationUnit, namespace: string, objects: ObjectLookup, timeoutMs: number): EffectiveSettings {
    const { parameters, settingsJson } = unit;
    return parameters === undefined
      ? { kind: 'settings', settingsJson }
      : parameters.resolve({
          namespace,
          objects,
          validate: (json) => this.#validated(unit, namespace, json, timeoutMs),
        });
  }

  /**
   * Settings that take too long are invalid, which is remembered: a timeout would count against the policy, and so against
   * all other namespaces.
   * @throws EngineError
   */
  #validated(unit: EvaluationUnit, namespace: string, settingsJson: string, leftMs: number): SettingsResult {
    const limitMs = unit.timeoutSeconds * MS_PER_SECOND * VALIDATION_SHARE;
    const waitMs = this.#validationBudget?.waitMs(unit.id, namespace, limitMs) ?? 0;
    if (waitMs > 0) {
      return { valid: false, message: postponedMessage(waitMs), isPostponed: true };
    }
    const timeoutMs = Math.min(limitMs, leftMs);
    const startedAt = performance.now();
    let isOver = false;
    this.#validationBudget?.started(unit.id, namespace);
    const context = this.#capabilities.context(unit, limitsOf(unit, timeoutMs), { timeoutMs });
    try {
      const verdict = unit.guest.validateSettings(settingsJson, context);
      return verdict.valid ? verdict : { valid: false, message: boundedText(verdict.message) };
    } catch (error) {
      isOver = error instanceof EngineError && error.code === 'guest-timeout';
      if (isOver && timeoutMs === limitMs) {
        const message = `the policy does not validate the settings in time: expected at most ${limitMs / MS_PER_SECOND} s`;
        return { valid: false, message };
      }
      throw error;
    } finally {
      // Fuel may end earlier than the time.
      const ms = isOver ? limitMs : performance.now() - startedAt;
      this.#validationBudget?.ended(unit.id, namespace, ms);
    }
  }

  /** Applies failurePolicy, mode, mutation rules and message of a policy to its own verdict. */
  apply(policy: LoadedPolicy, { outcome, verdict }: Judgement): Verdict {
    const { id, mode, failurePolicy } = policy;
    if (outcome === 'exempt' || outcome === 'excepted') {
      return verdict;
    }
    // As in Kubewarden, a guest that fails denies even with failurePolicy Ignore: the author of a request could make it
    // fail.
    const isMonitoredTimeout = outcome === 'timeout' && mode === 'monitor';
    if (failurePolicy === 'Ignore' && (outcome === 'not-initialized' || outcome === 'timeout') && !isMonitoredTimeout) {
      return ignored(id, outcome === 'timeout' ? TIMEOUT_MESSAGE : (verdict.message ?? ''));
    }
    if (outcome === 'not-initialized' || policy.kind === 'failed') {
      return verdict;
    }
    return mode === 'monitor' ? monitored(verdict) : enforcedVerdict(policy, verdict);
  }

  #logFailed(unit: EvaluationUnit, { uid }: Review, message: string, error: string): void {
    this.#log({ policy: unit.id, level: 'error', message, fields: { uid, error } });
  }
}

/**
 * Warns of an exception that ends soon those whom it concerns.
 * @param used all that the verdict takes
 */
function exceptedBy({ name, terms, expiresAt }: Exception, used: readonly Exception[], now: number): PolicyJudgement {
  const isEnding = expiresAt - now <= EXPIRING_SOON_MS;
  const warning = `allowed only by the exception ${name}, which ends at ${terms.expiresAt}`;
  const verdict = excepted(name, isEnding ? warning : undefined);
  return { outcome: 'excepted', verdict, exception: name, used: used.map((one) => one.terms.uid) };
}

/** A policy's own verdict with its mutation rules and message applied, as in protect mode. */
export function enforcedVerdict(policy: LoadedSinglePolicy | LoadedPolicyGroup, verdict: Verdict): Verdict {
  if (policy.kind === 'group') {
    return verdict;
  }
  const permitted = policy.allowedToMutate ? verdict : withoutForbiddenPatch(verdict, policy.id);
  return policy.message === undefined ? permitted : withMessage(permitted, policy.message);
}

function postponedMessage(waitMs: number): string {
  const seconds = Math.ceil(waitMs / MS_PER_SECOND);
  return `the policy took too long to validate earlier settings of this namespace: it validates others in ${seconds} s`;
}

/** The verdict of a guest that admits a request. */
const ADMITTED: GuestVerdict = { accepted: true, auditAnnotations: null, warnings: null };

/** Settings that parameters complete are validated with each namespace's parameters, not alone. */
function checkUnit({ parameters }: EvaluationUnit, validate: () => SettingsVerdict): SettingsVerdict {
  if (parameters?.problem !== undefined) {
    return { valid: false, message: parameters.problem };
  }
  return parameters === undefined || parameters.usesDefaults ? validate() : { valid: true };
}

function limitsOf(unit: EvaluationUnit, timeoutMs = unit.timeoutSeconds * MS_PER_SECOND): CallLimits {
  const { mode } = unit.guest;
  // Builtin code counts its own costs.
  const fuel = mode === 'builtin' ? Infinity : Math.ceil((timeoutMs / MS_PER_SECOND) * FUEL_PER_SECOND[mode]);
  return { fuel, answerBytes: MAX_ANSWER_BYTES };
}

/** The result of one member of a group; `accepted` is undefined when the member gave no verdict. */
export interface MemberResult {
  readonly accepted: boolean | undefined;
  readonly message: string | undefined;
  readonly isTimeout: boolean;
  /** Whether it refuses a request only for parameters that go with the namespace. */
  readonly isEnding?: true;
}

function memberResult(review: Review, result: UnitResult): MemberResult {
  if (result.kind === 'timeout') {
    return { accepted: undefined, message: TIMEOUT_MESSAGE, isTimeout: true };
  }
  if (result.kind === 'refused') {
    // Not a denial, which `!member()` would turn into an admission.
    return { accepted: undefined, message: result.message, isTimeout: false };
  }
  if (result.kind === 'ending') {
    return { accepted: undefined, message: result.message, isTimeout: false, isEnding: true };
  }
  if (result.kind === 'failed') {
    return { accepted: undefined, message: `internal server error: ${result.message}`, isTimeout: false };
  }
  const verdict = fromGuest(review, result.verdict);
  return verdict.patch === undefined
    ? { accepted: verdict.allowed, message: verdict.message, isTimeout: false }
    : { accepted: false, message: MEMBER_MUTATION_MESSAGE, isTimeout: false };
}
