import { EXPRESSION_COST_LIMIT, POLICY_COST_BUDGET } from '../../cel/index.ts';
import type { CompiledAuditAnnotation, CompiledPolicy, CompiledValidation } from './compiled-policy.ts';
import { ExpressionRun, OutOfBudget } from './expression-run.ts';
import type { Activation, ExpressionResult } from './expression-run.ts';
import { trimSpace } from './go-space.ts';
import { checkMatchConditions } from './match-conditions.ts';
import { MAX_ANNOTATION_VALUE_BYTES, MAX_MESSAGE_BYTES } from './policy-spec.ts';
import type { Reason, ValidationSpec } from './policy-spec.ts';

/** Result of one validation of a policy. */
export interface ValidationDecision {
  readonly isDenied: boolean;
  readonly message: string;
  readonly reason: Reason;
}

/** Result of a policy for one request and one parameter. */
export interface ValidationResult {
  /** In the order of the validations; a single one when the policy as a whole failed. */
  readonly decisions: readonly ValidationDecision[];
  readonly annotations: readonly { readonly key: string; readonly value: string }[];
  /** Errors of audit annotations, with failurePolicy Fail. */
  readonly annotationErrors: readonly string[];
  /** Why messageExpressions of denials gave no message: `validations[0].messageExpression: …`. */
  readonly messageProblems: readonly string[];
}

const NOTHING: ValidationResult = { decisions: [], annotations: [], annotationErrors: [], messageProblems: [] };
const ADMITTED: ValidationDecision = { isDenied: false, message: '', reason: 'Invalid' };

/** Evaluates a validating policy like API servers. Never throws. */
export function validate(policy: CompiledPolicy, activation: Activation): ValidationResult {
  const matching = checkMatchConditions(policy, activation);
  if ('error' in matching) {
    return failed(policy, matching.error);
  }
  if (!matching.matches) {
    return NOTHING;
  }
  try {
    const run = new ExpressionRun(policy, activation, POLICY_COST_BUDGET);
    const results = policy.validations.map((validation) => run.evaluate(validation));
    // The authorizer is not available to messages and annotations.
    const { authorizer: _none, requestResource: _neither, ...quiet } = activation;
    const messages = new Messages(policy, quiet, run.remaining);
    if (messages.mayRunOut || results.some((result) => !isTrue(result))) {
      messages.evaluate();
    }
    const decisions = policy.validations.map((validation, index) => {
      const result = results[index];
      return result === undefined || isTrue(result) ? messages.admitted() : messages.decide(validation, index, result);
    });
    return { ...annotate(policy, quiet), decisions, messageProblems: messages.problems };
  } catch (error) {
    if (!(error instanceof OutOfBudget)) {
      throw error;
    }
    return failed(policy, error.message);
  }
}

/** Result of a policy that failed as a whole. */
function failed(policy: CompiledPolicy, message: string): ValidationResult {
  return { ...NOTHING, decisions: [failure(policy, message)] };
}

function failure({ spec }: CompiledPolicy, message: string): ValidationDecision {
  return { isDenied: spec.failurePolicy === 'Fail', message, reason: 'Invalid' };
}

function isTrue(result: ExpressionResult): boolean {
  return 'value' in result && result.value === true;
}

/** The messageExpressions of a policy. As in API servers, all are evaluated, before the denials are known. */
class Messages {
  readonly #policy: CompiledPolicy;
  readonly #activation: Activation;
  readonly #budget: number;
  #results: readonly (ExpressionResult | undefined)[] = [];
  /** Error of all expressions: they exceed the budget. */
  #error: string | undefined;
  readonly problems: string[] = [];

  constructor(policy: CompiledPolicy, activation: Activation, budget: number) {
    this.#policy = policy;
    this.#activation = activation;
    this.#budget = budget;
  }

  /**
   * Whether they could exceed the remaining budget, which denies even if every validation holds. Otherwise messages of
   * validations that hold have no effect and need no evaluation.
   */
  get mayRunOut(): boolean {
    const expressions = this.#policy.validations.filter(({ message }) => message !== undefined).length;
    return expressions > 0 && (expressions + this.#policy.variables.size) * EXPRESSION_COST_LIMIT > this.#budget;
  }

  evaluate(): void {
    if (this.#policy.validations.every(({ message }) => message === undefined)) {
      return;
    }
    const run = new ExpressionRun(this.#policy, this.#activation, this.#budget);
    try {
      this.#results = this.#policy.validations.map(({ message }) => message && run.evaluate(message));
    } catch (error) {
      if (!(error instanceof OutOfBudget)) {
        throw error;
      }
      this.#error = `failed messageExpression: ${error.message}`;
    }
  }

  admitted(): ValidationDecision {
    return this.#error === undefined ? ADMITTED : failure(this.#policy, this.#error);
  }

  /** Result of a validation that fails. */
  decide({ spec }: CompiledValidation, index: number, result: ExpressionResult): ValidationDecision {
    if ('error' in result) {
      return failure(this.#policy, result.error);
    }
    if (this.#error !== undefined) {
      return failure(this.#policy, this.#error);
    }
    return { isDenied: true, message: this.#computed(index) || writtenMessage(spec), reason: spec.reason };
  }

  /** Empty when the expression gives no valid message. */
  #computed(index: number): string {
    const result = this.#results[index];
    if (result === undefined) {
      return '';
    }
    const problem = messageProblem(result);
    if (problem === undefined && 'value' in result && typeof result.value === 'string') {
      return trimSpace(result.value);
    }
    this.problems.push(`validations[${index}].messageExpression: ${problem ?? 'no text'}`);
    return '';
  }
}

/** Why the result of a messageExpression is no message. */
function messageProblem(result: ExpressionResult): string | undefined {
  if ('error' in result) {
    return result.error;
  }
  const message = typeof result.value === 'string' ? trimSpace(result.value) : '';
  if (message === '') {
    return 'the message is empty';
  }
  if (message.includes('\n')) {
    return 'the message has several lines';
  }
  return Buffer.byteLength(message) > MAX_MESSAGE_BYTES
    ? `the message is longer than ${MAX_MESSAGE_BYTES} bytes`
    : undefined;
}

/** Message of a failed validation without a computed one. */
function writtenMessage({ message, expression }: ValidationSpec): string {
  return trimSpace(message) || `failed expression: ${trimSpace(expression)}`;
}

function annotate(
  policy: CompiledPolicy,
  activation: Activation,
): Pick<ValidationResult, 'annotations' | 'annotationErrors'> {
  if (policy.auditAnnotations.length === 0) {
    return { annotations: [], annotationErrors: [] };
  }
  const run = new ExpressionRun(policy, activation, POLICY_COST_BUDGET);
  const annotations: { key: string; value: string }[] = [];
  const annotationErrors: string[] = [];
  for (const annotation of policy.auditAnnotations) {
    const result = run.evaluate(annotation);
    if ('error' in result) {
      if (policy.spec.failurePolicy === 'Fail') {
        annotationErrors.push(result.error);
      }
    } else if (typeof result.value === 'string') {
      const value = trimSpace(result.value);
      if (value !== '') {
        annotations.push({ key: annotation.key, value: cut(value) });
      }
    } else if (result.value !== null) {
      annotationErrors.push(wrongType(annotation));
    }
  }
  return { annotations, annotationErrors };
}

/** Unreachable: the checker allows only strings and null. */
function wrongType({ text }: CompiledAuditAnnotation): string {
  return `valueExpression '${text}' resulted in unsupported return type. Return type must be either string or null.`;
}

/** Cuts a long value at a character boundary. */
function cut(value: string): string {
  const bytes = Buffer.from(value);
  if (bytes.length <= MAX_ANNOTATION_VALUE_BYTES) {
    return value;
  }
  let end = MAX_ANNOTATION_VALUE_BYTES;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) {
    end--;
  }
  return bytes.toString('utf8', 0, end);
}
