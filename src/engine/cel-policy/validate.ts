import { EXPRESSION_COST_LIMIT, POLICY_COST_BUDGET } from '../../cel/index.ts';
import type { CompiledAuditAnnotation, CompiledPolicy, CompiledValidation } from './compiled-policy.ts';
import { ExpressionRun, OutOfBudget } from './expression-run.ts';
import type { Activation, ExpressionResult } from './expression-run.ts';
import { trimSpace } from './go-space.ts';
import { checkMatchConditions } from './match-conditions.ts';
import { MAX_ANNOTATION_VALUE_BYTES, MAX_MESSAGE_BYTES } from './policy-spec.ts';
import type { Reason, ValidationSpec } from './policy-spec.ts';

/** What one validation of a policy came to. */
export interface ValidationDecision {
  readonly isDenied: boolean;
  readonly message: string;
  readonly reason: Reason;
}

/** What a policy says about one request with one parameter. */
export interface ValidationResult {
  /** In the order of the validations; one only when the policy as a whole failed. */
  readonly decisions: readonly ValidationDecision[];
  readonly annotations: readonly { readonly key: string; readonly value: string }[];
  /** Audit annotations that failed, where failures deny. */
  readonly annotationErrors: readonly string[];
}

const NOTHING: ValidationResult = { decisions: [], annotations: [], annotationErrors: [] };
const ADMITTED: ValidationDecision = { isDenied: false, message: '', reason: 'Invalid' };

/** Evaluates a validating policy as API servers do. Never throws. */
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
    // Messages and annotations may not ask the authorizer.
    const { authorizer: _none, requestResource: _neither, ...quiet } = activation;
    const messages = new Messages(policy, quiet, run.remaining);
    if (messages.mayRunOut || results.some((result) => !isTrue(result))) {
      messages.evaluate();
    }
    const decisions = policy.validations.map((validation, index) => {
      const result = results[index];
      return result === undefined || isTrue(result) ? messages.admitted() : messages.decide(validation, index, result);
    });
    return { ...annotate(policy, quiet), decisions };
  } catch (error) {
    if (!(error instanceof OutOfBudget)) {
      throw error;
    }
    return failed(policy, error.message);
  }
}

/** What a policy that failed as a whole says. */
function failed(policy: CompiledPolicy, message: string): ValidationResult {
  return { ...NOTHING, decisions: [failure(policy, message)] };
}

function failure({ spec }: CompiledPolicy, message: string): ValidationDecision {
  return { isDenied: spec.failurePolicy === 'Fail', message, reason: 'Invalid' };
}

function isTrue(result: ExpressionResult): boolean {
  return 'value' in result && result.value === true;
}

/** The messageExpressions of a policy: evaluated together, before it is known which will be shown. */
class Messages {
  readonly #policy: CompiledPolicy;
  readonly #activation: Activation;
  readonly #budget: number;
  #results: readonly (ExpressionResult | undefined)[] = [];
  /** Of all of them: they cost too much. */
  #error: string | undefined;

  constructor(policy: CompiledPolicy, activation: Activation, budget: number) {
    this.#policy = policy;
    this.#activation = activation;
    this.#budget = budget;
  }

  /**
   * Whether they could cost more than is left, which denies although every validation holds. Otherwise nobody sees
   * whether messages of validations that hold were computed.
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

  /** What a validation that does not hold comes to. */
  decide({ spec }: CompiledValidation, index: number, result: ExpressionResult): ValidationDecision {
    if ('error' in result) {
      return failure(this.#policy, result.error);
    }
    if (this.#error !== undefined) {
      return failure(this.#policy, this.#error);
    }
    return { isDenied: true, message: this.#computed(index) || writtenMessage(spec), reason: spec.reason };
  }

  /** Empty when there is none that can be shown. */
  #computed(index: number): string {
    const result = this.#results[index];
    if (result === undefined || 'error' in result || typeof result.value !== 'string') {
      return '';
    }
    const message = trimSpace(result.value);
    return Buffer.byteLength(message) > MAX_MESSAGE_BYTES || message.includes('\n') ? '' : message;
  }
}

/** What a validation that does not hold says where nothing is computed for it. */
export function writtenMessage({ message, expression }: ValidationSpec): string {
  return trimSpace(message) || `failed expression: ${trimSpace(expression)}`;
}

function annotate(
  policy: CompiledPolicy,
  activation: Activation,
): Pick<ValidationResult, 'annotations' | 'annotationErrors'> {
  if (policy.auditAnnotations.length === 0) {
    return NOTHING;
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

/** Not reached: an annotation is checked to give text or null. */
function wrongType({ text }: CompiledAuditAnnotation): string {
  return `valueExpression '${text}' resulted in unsupported return type. Return type must be either string or null.`;
}

/** The first bytes of a long value, without half a character at the end. */
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
