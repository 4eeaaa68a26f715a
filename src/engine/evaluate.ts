import type { ExecutionMode } from '../modules/index.ts';
import type { CallContext, CallLimits } from '../wasm/index.ts';
import { MAX_REVIEW_BYTES, parseAdmissionReview, parseRawReview, ReviewError } from './admission-review.ts';
import type { Review } from './admission-review.ts';
import { EngineError, errorText } from './errors.ts';
import { evaluateGroupExpression } from './group-expression.ts';
import { HostCapabilities } from './host-capabilities.ts';
import type { PolicyLog } from './host-port.ts';
import { unitsOf } from './loaded-policy.ts';
import type { EvaluationUnit, LoadedPolicy, LoadedPolicyGroup, PolicyOptions } from './loaded-policy.ts';
import type { PolicyMode } from './policy-definition.ts';
import {
  allowed,
  fromVerdict,
  groupDenied,
  guestFailed,
  httpError,
  ignored,
  internalFailure,
  MEMBER_MUTATION_MESSAGE,
  monitored,
  notInitialized,
  rawAnswer,
  reviewAnswer,
  timedOut,
  TIMEOUT_MESSAGE,
  withMessage,
  withoutForbiddenPatch,
} from './response.ts';
import type { AdmissionResponse } from './response.ts';
import type { GuestVerdict, SettingsVerdict } from './verdict.ts';

/** By which route a request came: `audit` gets verdicts without mode, mutation rules and message of the policy. */
export type Route = 'validate' | 'audit' | 'validate_raw';

/**
 * Fuel of one second of evaluation: what guests were measured to use in one (waPC in Rust and AssemblyScript, and Rego:
 * 2 × 10⁹). Code of the Go compiler is charged for far more than it executes, because its functions are loops around
 * one big switch: 20 to 45 × 10⁹. A loop of nothing uses 7 × 10⁹, and is cut the earlier. The wall clock deadline
 * stands behind all of this.
 */
export const FUEL_PER_SECOND: Readonly<Record<ExecutionMode, number>> = {
  'kubewarden-wapc': 2e9,
  opa: 2e9,
  gatekeeper: 2e9,
  wasi: 20e9,
};
/** Largest answer of a guest: it may hold the object of the largest review again. */
export const MAX_ANSWER_BYTES = MAX_REVIEW_BYTES;

/** What an {@link Observation} says for a kind, namespace or operation that has no such name's form. */
export const OTHER_NAME = 'other';

/** How an evaluation came to its answer. */
export type Outcome =
  /** The policy gave a verdict. */
  | 'verdict'
  /** The request is for the namespace whose requests are always accepted. */
  | 'exempt'
  /** The guest trapped, or answered garbage. */
  | 'failed'
  /** The guest used up its time. */
  | 'timeout'
  /** The policy has no version that could be loaded. */
  | 'not-initialized';

/**
 * What metrics need of one evaluation (contract 3.4): what the policy said, not what was made of it. Nothing that differs
 * from request to request, so that few of them are told apart.
 */
export interface Observation {
  readonly policy: string;
  readonly mode: PolicyMode;
  readonly route: Route;
  readonly outcome: Outcome;
  /** Kind that the client asked for, without group and version. Absent for raw requests, as the next two. */
  readonly kind?: string;
  readonly namespace?: string;
  readonly operation?: string;
  /** The policy's own verdict: monitor mode does not change it. */
  readonly accepted: boolean;
  readonly mutated: boolean;
  /** `status.code` of the policy's own answer. */
  readonly errorCode?: number;
}

/** An HTTP answer and what to note about it. No observation when no policy was asked. */
export interface Evaluation {
  readonly status: number;
  readonly body: string;
  readonly observation: Observation | null;
}

/**
 * Told before a guest starts: the policy's id or `group/member`, the time that it has in milliseconds, and the member's
 * position in its group (-1 outside of groups).
 */
export type Entering = (id: string, timeoutMs: number, member: number) => void;

export interface EvaluateOptions {
  readonly route: Route;
  /** Ids of policies, groups and members (`group/member`) that are answered as timed out without being run. */
  readonly timedOut?: ReadonlySet<string>;
  /** Called before a guest starts. */
  readonly entering?: Entering;
  /** Called when the guest is done, however it ended. */
  readonly leaving?: () => void;
}

/** The answer before mode, mutation rules and message of the policy apply: what `/audit` gets. */
interface Judgement {
  readonly outcome: Outcome;
  readonly response: AdmissionResponse;
}

/** What one guest call came to. */
type UnitResult =
  | { readonly kind: 'verdict'; readonly verdict: GuestVerdict }
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'timeout' };

/** Answers one request. Synchronous, keeps nothing, never throws. */
export function evaluate(policy: LoadedPolicy, body: Uint8Array, options: EvaluateOptions): Evaluation {
  return new Evaluator(policy.options).evaluate(policy, body, options);
}

/**
 * Asks the guests of a policy for their protocol, and for their opinion of its settings. Throws `protocol-unsupported`,
 * and `guest-error` or `guest-timeout` when a guest gives no opinion.
 */
export function checkSettings(policy: LoadedPolicy, entering?: Entering): SettingsVerdict {
  return new Evaluator(policy.options).checkSettings(policy, entering);
}

class Evaluator {
  readonly #capabilities: HostCapabilities;
  readonly #log: PolicyLog;
  readonly #alwaysAcceptNamespace: string | undefined;

  constructor({ port, log, alwaysAcceptNamespace }: PolicyOptions) {
    this.#capabilities = new HostCapabilities(port, log);
    this.#log = log;
    this.#alwaysAcceptNamespace = alwaysAcceptNamespace;
  }

  checkSettings(policy: LoadedPolicy, entering?: Entering): SettingsVerdict {
    const isGroup = policy.kind === 'group';
    const problems: string[] = [];
    for (const [index, unit] of unitsOf(policy).entries()) {
      const context = (): CallContext => this.#capabilities.context(unit, limitsOf(unit));
      entering?.(unit.id, unit.timeoutSeconds * 1_000, isGroup ? index : -1);
      unit.guest.checkProtocol(context());
      const verdict = unit.guest.validateSettings(unit.settingsJson, context());
      if (!verdict.valid) {
        problems.push(isGroup ? `${unit.id}: ${verdict.message}` : verdict.message);
      }
    }
    return problems.length === 0 ? { valid: true } : { valid: false, message: problems.join('; ') };
  }

  evaluate(policy: LoadedPolicy, body: Uint8Array, options: EvaluateOptions): Evaluation {
    const isRaw = options.route === 'validate_raw';
    try {
      const review = isRaw ? parseRawReview(body) : parseAdmissionReview(body);
      const judgement = this.#judge(policy, review, options);
      const response =
        options.route === 'audit' ? judgement.response : this.#apply(policy, judgement.outcome, judgement.response);
      const answer = isRaw ? rawAnswer(response) : reviewAnswer(response);
      return { ...answer, observation: observe(policy, review, options.route, judgement) };
    } catch (error) {
      if (error instanceof ReviewError) {
        return { ...httpError(error.status, error.message), observation: null };
      }
      const fields = { error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
      this.#log({ policy: policy.id, level: 'error', message: 'the engine failed', fields });
      return { ...internalFailure(), observation: null };
    }
  }

  #judge(policy: LoadedPolicy, review: Review, options: EvaluateOptions): Judgement {
    const { uid } = review;
    const namespace = review.admission?.namespace;
    if (namespace !== undefined && namespace === this.#alwaysAcceptNamespace) {
      return { outcome: 'exempt', response: allowed(uid) };
    }
    if (policy.kind === 'failed') {
      return { outcome: 'not-initialized', response: notInitialized(uid, policy.message) };
    }
    if (options.timedOut?.has(policy.id) === true) {
      return { outcome: 'timeout', response: timedOut(uid) };
    }
    if (policy.kind === 'group') {
      return this.#judgeGroup(policy, review, options);
    }
    const result = this.#ask(policy.unit, review, options, -1);
    if (result.kind === 'timeout') {
      return { outcome: 'timeout', response: timedOut(uid) };
    }
    return result.kind === 'failed'
      ? { outcome: 'failed', response: guestFailed(uid, result.message) }
      : { outcome: 'verdict', response: fromVerdict(review, result.verdict) };
  }

  #judgeGroup(group: LoadedPolicyGroup, review: Review, options: EvaluateOptions): Judgement {
    const { uid } = review;
    const results = new Map<string, MemberResult>();
    const order = [...group.members.keys()];
    const verdict = evaluateGroupExpression(group.expression, (name) => {
      const known = results.get(name);
      if (known !== undefined) {
        return known.accepted;
      }
      const unit = group.members.get(name);
      if (unit === undefined) {
        return undefined;
      }
      const result = memberResult(review, this.#ask(unit, review, options, order.indexOf(name)));
      results.set(name, result);
      return result.accepted;
    });
    if (verdict === true) {
      return { outcome: 'verdict', response: allowed(uid) };
    }
    const causes = [...results]
      .filter(([, { accepted }]) => accepted !== true)
      .map(([member, { message }]) => ({ member, message }));
    const failures = [...results.values()].filter(({ accepted }) => accepted === undefined);
    const isFailure = verdict === undefined;
    const outcome = !isFailure ? 'verdict' : failures.every(({ isTimeout }) => isTimeout) ? 'timeout' : 'failed';
    return { outcome, response: groupDenied(uid, group.message, causes, isFailure) };
  }

  #ask(unit: EvaluationUnit, review: Review, options: EvaluateOptions, member: number): UnitResult {
    if (options.timedOut?.has(unit.id) === true) {
      return { kind: 'timeout' };
    }
    options.entering?.(unit.id, unit.timeoutSeconds * 1_000, member);
    try {
      const { guest, settingsJson } = unit;
      const inventoryJson =
        guest.mode === 'opa' || guest.mode === 'gatekeeper'
          ? this.#capabilities.inventory(unit, guest.mode)
          : undefined;
      const input = {
        requestJson: review.requestJson,
        settingsJson,
        isRaw: review.admission === undefined,
        ...(inventoryJson === undefined ? {} : { inventoryJson }),
      };
      const context = this.#capabilities.context(unit, limitsOf(unit));
      return { kind: 'verdict', verdict: guest.validate(input, context) };
    } catch (error) {
      const isTimeout = error instanceof EngineError && error.code === 'guest-timeout';
      const message = isTimeout ? 'the policy timed out' : 'the policy failed';
      this.#log({ policy: unit.id, level: 'error', message, fields: { uid: review.uid, error: errorText(error) } });
      return isTimeout ? { kind: 'timeout' } : { kind: 'failed', message: errorText(error) };
    } finally {
      options.leaving?.();
    }
  }

  /** Applies failurePolicy, mode, mutation rules and message of a policy to its answer. */
  #apply(policy: LoadedPolicy, outcome: Outcome, response: AdmissionResponse): AdmissionResponse {
    const { id, mode, failurePolicy } = policy;
    if (outcome === 'exempt') {
      return response;
    }
    // A guest that fails denies, as upstream, whatever failurePolicy says: whoever writes the request could make it fail.
    if (failurePolicy === 'Ignore' && (outcome === 'not-initialized' || outcome === 'timeout')) {
      return ignored(response.uid, id, outcome === 'timeout' ? TIMEOUT_MESSAGE : (response.status?.message ?? ''));
    }
    if (outcome === 'not-initialized' || policy.kind === 'failed') {
      return response;
    }
    if (mode === 'monitor') {
      this.#logMonitored(id, response);
      return monitored(response);
    }
    if (policy.kind === 'group') {
      return response;
    }
    const permitted = policy.allowedToMutate ? response : withoutForbiddenPatch(response, id);
    return policy.message === undefined ? permitted : withMessage(permitted, policy.message);
  }

  #logMonitored(policy: string, response: AdmissionResponse): void {
    const { uid, allowed: isAllowed, patch, status } = response;
    const fields = {
      uid,
      allowed: isAllowed,
      mutated: patch !== undefined,
      ...(status?.message === undefined ? {} : { response_message: status.message }),
      ...(status?.code === undefined ? {} : { response_code: status.code }),
    };
    this.#log({ policy, level: 'info', message: 'policy evaluation (monitor mode)', fields });
  }
}

function limitsOf(unit: EvaluationUnit): CallLimits {
  const { mode } = unit.guest;
  // Builtin code counts its own costs.
  const fuel = mode === 'builtin' ? Infinity : Math.ceil(unit.timeoutSeconds * FUEL_PER_SECOND[mode]);
  return { fuel, answerBytes: MAX_ANSWER_BYTES };
}

/** What a member of a group contributes; `accepted` is undefined when it gave no verdict. */
interface MemberResult {
  readonly accepted: boolean | undefined;
  readonly message: string | undefined;
  readonly isTimeout: boolean;
}

function memberResult(review: Review, result: UnitResult): MemberResult {
  if (result.kind === 'timeout') {
    return { accepted: undefined, message: TIMEOUT_MESSAGE, isTimeout: true };
  }
  if (result.kind === 'failed') {
    return { accepted: undefined, message: `internal server error: ${result.message}`, isTimeout: false };
  }
  const response = fromVerdict(review, result.verdict);
  return response.patch === undefined
    ? { accepted: response.allowed, message: response.status?.message, isTimeout: false }
    : { accepted: false, message: MEMBER_MUTATION_MESSAGE, isTimeout: false };
}

/** Forms of Kubernetes' names: whoever writes a review could write anything, of any length. */
const KIND = /^[A-Za-z][A-Za-z0-9]{0,62}$/;
const NAMESPACE = /^[a-z0-9][a-z0-9.-]{0,62}$/;
const OPERATION = /^(?:CREATE|UPDATE|DELETE|CONNECT)$/;

function named(name: string, form: RegExp): string {
  return form.test(name) ? name : OTHER_NAME;
}

function observe(policy: LoadedPolicy, review: Review, route: Route, { outcome, response }: Judgement): Observation {
  const { admission } = review;
  const { status } = response;
  return {
    policy: policy.id,
    mode: policy.mode,
    route,
    outcome,
    ...(admission === undefined
      ? {}
      : { kind: named(admission.kind.kind, KIND), operation: named(admission.operation, OPERATION) }),
    ...(admission?.namespace === undefined ? {} : { namespace: named(admission.namespace, NAMESPACE) }),
    accepted: response.allowed,
    mutated: response.patch !== undefined,
    ...(status?.code === undefined ? {} : { errorCode: status.code }),
  };
}
