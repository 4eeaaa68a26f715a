import { BoundedEvaluation, parseBounded } from '../../cel/index.ts';
import type { BoundedExpression, BoundedNames, CelValue } from '../../cel/index.ts';
import type { GuestVerdict } from '../verdict.ts';
import type { AdmissionRequest } from './admission-request.ts';
import { FieldProblems } from './field-problem.ts';
import type { PolicySpec, ValidationSpec } from './policy-spec.ts';
import { verdictOf } from './policy-verdict.ts';
import { readSettings } from './read-policy.ts';
import { writtenMessage } from './validate.ts';

/** What expressions may look at: not what somebody would have to be asked for. */
const NAMES: ReadonlySet<string> = new Set(['object', 'oldObject', 'request']);
/** With more messages that are computed, and variables, these are computed although every validation holds: see Messages.mayRunOut. */
const MAX_MESSAGES_AND_VARIABLES = 8;

interface BoundedValidation {
  readonly spec: ValidationSpec;
  readonly expression: BoundedExpression;
}

/** A policy made of settings whose expressions are evaluated with a bound: by a thread that nobody could end. */
export class BoundedPolicy {
  readonly #validations: readonly BoundedValidation[];
  readonly #variables: BoundedNames['variables'];
  /** Whether a message is computed when a validation does not hold. */
  readonly #hasMessages: boolean;

  private constructor(validations: readonly BoundedValidation[], variables: BoundedNames['variables']) {
    this.#validations = validations;
    this.#variables = variables;
    this.#hasMessages = validations.some(({ spec }) => spec.messageExpression !== '');
  }

  /** Reads settings that are valid; undefined when they have anything that is not evaluated with a bound. */
  static of(json: unknown): BoundedPolicy | undefined {
    const problems = new FieldProblems();
    const { spec } = readSettings(json, problems);
    if (problems.list.length > 0 || !hasValidationsOnly(spec)) {
      return undefined;
    }
    const variables = new Map<string, BoundedExpression>();
    for (const { name, expression } of spec.variables) {
      const variable = parseBounded(expression, NAMES, variables);
      if (variable === undefined) {
        return undefined;
      }
      variables.set(name, variable);
    }
    const validations: BoundedValidation[] = [];
    for (const validation of spec.validations) {
      const expression = parseBounded(validation.expression, NAMES, variables);
      if (expression === undefined) {
        return undefined;
      }
      validations.push({ spec: validation, expression });
    }
    return new BoundedPolicy(validations, variables);
  }

  /** The verdict that the policy itself gives; undefined when nobody here knows it. */
  evaluate({ object, oldObject, json: request }: AdmissionRequest): GuestVerdict | undefined {
    const bindings = new Map<string, CelValue>([
      ['object', object ?? null],
      ['oldObject', oldObject ?? null],
      ['request', request],
    ]);
    const evaluation = new BoundedEvaluation({ bindings, variables: this.#variables });
    const denials: Pick<ValidationSpec, 'message' | 'reason'>[] = [];
    for (const { spec, expression } of this.#validations) {
      const value = evaluation.evaluate(expression);
      // All messages are computed then, and what they cost together may be all that is said.
      if (value === false && !this.#hasMessages) {
        denials.push({ message: writtenMessage(spec), reason: spec.reason });
      } else if (value !== true) {
        return undefined;
      }
    }
    return verdictOf(denials);
  }
}

function hasValidationsOnly(spec: PolicySpec): boolean {
  const { kind, paramKind, matchConstraints, matchConditions, auditAnnotations, variables, validations } = spec;
  const messages = validations.filter(({ messageExpression }) => messageExpression !== '').length;
  return (
    kind === 'validating' &&
    paramKind === undefined &&
    matchConstraints === undefined &&
    matchConditions.length === 0 &&
    auditAnnotations.length === 0 &&
    !looksAtNamespace(spec) &&
    (messages === 0 || messages + variables.length <= MAX_MESSAGES_AND_VARIABLES)
  );
}

/** As builtin:cel takes it: what merely names it has the namespace read, which may fail. */
function looksAtNamespace({ variables, validations }: PolicySpec): boolean {
  const texts = [...variables, ...validations].map(({ expression }) => expression);
  const messages = validations.map(({ messageExpression }) => messageExpression);
  return [...texts, ...messages].some((text) => text.includes('namespaceObject'));
}
