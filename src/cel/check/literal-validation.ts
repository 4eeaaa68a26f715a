import type { CallExpression, Expression, ListExpression, MapExpression } from '../model/ast.ts';
import { CelError } from '../model/errors.ts';
import type { CelIssue } from '../model/errors.ts';
import { checkFormat } from '../libraries/format-check.ts';
import { DYN } from '../model/type.ts';
import type { CelType } from '../model/type.ts';
import { EvaluationFailure } from '../model/value.ts';
import type { CheckedExpression } from './checker.ts';
import { formatType } from '../syntax/type-text.ts';
import { isSameType, optionalValueType } from './unification.ts';

/** Functions whose literal argument is parsed at compile time: an invalid literal fails in every evaluation. */
const PARSING_FUNCTIONS: ReadonlySet<string> = new Set(['duration', 'timestamp', 'matches']);

/** The function that accepts lists of mixed types. */
const FORMAT = 'format';
const FORMAT_OVERLOAD = 'string_format';

interface LiteralRules {
  /** Whether lists and maps must not mix types, including `dyn`: all API servers require this. */
  readonly homogeneous: boolean;
  /**
   * Whether literals of durations, timestamps and patterns must be valid: API servers require this since Kubernetes
   * 1.29.
   */
  readonly parsed: boolean;
}

/**
 * Validates literals as API servers do after type checking.
 * @throws CelError 'check-failed' with all errors
 */
export function validateLiterals(checked: CheckedExpression, rules: LiteralRules): void {
  const validator = new LiteralValidator(checked, rules);
  validator.visit(checked.expression, !rules.homogeneous);
  if (validator.issues.length > 0) {
    throw CelError.ofIssues('check-failed', validator.issues);
  }
}

const MIXING_HINT =
  'elements of a list, and keys and values of a map, have one type: put dyn(...) around each to mix them';

class LiteralValidator {
  readonly issues: CelIssue[] = [];
  readonly #checked: CheckedExpression;
  readonly #rules: LiteralRules;

  constructor(checked: CheckedExpression, rules: LiteralRules) {
    this.#checked = checked;
    this.#rules = rules;
  }

  visit(node: Expression, mayMix: boolean): void {
    switch (node.kind) {
      case 'literal':
      case 'identifier':
        return;
      case 'select':
        this.visit(node.operand, mayMix);
        return;
      case 'call':
        this.#visitCall(node, mayMix || node.function === FORMAT);
        return;
      case 'list':
        for (const element of node.elements) {
          this.visit(element, mayMix);
        }
        if (!mayMix) {
          this.#expectOneType(node);
        }
        return;
      case 'map':
        for (const entry of node.entries) {
          this.visit(entry.key, mayMix);
          this.visit(entry.value, mayMix);
        }
        if (!mayMix) {
          this.#expectOneTypeEach(node);
        }
        return;
      case 'struct':
        for (const field of node.fields) {
          this.visit(field.value, mayMix);
        }
        return;
      default:
        for (const part of [node.range, node.initial, node.condition, node.step, node.result]) {
          this.visit(part, mayMix);
        }
    }
  }

  #visitCall(node: CallExpression, mayMix: boolean): void {
    if (node.target !== undefined) {
      this.visit(node.target, mayMix);
    }
    for (const arg of node.args) {
      this.visit(arg, mayMix);
    }
    const [argument] = node.args;
    if (!this.#rules.parsed) {
      return;
    }
    if (argument?.kind === 'literal' && PARSING_FUNCTIONS.has(node.function) && this.#alwaysFails(node, argument)) {
      this.#report(argument, `invalid ${node.function} argument`);
    }
    if (this.#checked.overloads.get(node.id)?.some(({ id }) => id === FORMAT_OVERLOAD) === true) {
      const problem = checkFormat(node, (part) => this.#typeOf(part, false));
      if (problem !== undefined) {
        this.#report(problem.node, problem.message);
      }
    }
  }

  #alwaysFails(node: CallExpression, argument: Extract<Expression, { kind: 'literal' }>): boolean {
    const [overload] = this.#checked.overloads.get(node.id) ?? [];
    if (overload === undefined) {
      return false;
    }
    const args = overload.parameters.length === 1 ? [argument.value] : ['', argument.value];
    return overload.call(...args) instanceof EvaluationFailure;
  }

  /** Reports the first element with another type than the element before it. */
  #expectOneType({ elements, optionalIndexes }: ListExpression): void {
    const types = elements.map((element, index) => this.#typeOf(element, optionalIndexes.has(index)));
    const [expected = DYN] = types;
    const mismatch = types.findIndex((type) => !isSameType(expected, type));
    const element = elements[mismatch];
    if (element !== undefined) {
      this.#mismatch(element, expected, types[mismatch] ?? DYN);
    }
  }

  /** Reports each key and value with another type than the first one. */
  #expectOneTypeEach({ entries: [first, ...others] }: MapExpression): void {
    if (first === undefined) {
      return;
    }
    const keyType = this.#typeOf(first.key, false);
    const valueType = this.#typeOf(first.value, first.isOptional);
    for (const { key, value, isOptional } of others) {
      this.#expect(key, keyType, this.#typeOf(key, false));
      this.#expect(value, valueType, this.#typeOf(value, isOptional));
    }
  }

  #expect(node: Expression, expected: CelType, actual: CelType): void {
    if (!isSameType(expected, actual)) {
      this.#mismatch(node, expected, actual);
    }
  }

  #typeOf(node: Expression, isOptional: boolean): CelType {
    const type = this.#checked.types[node.id] ?? DYN;
    return isOptional ? (optionalValueType(type) ?? type) : type;
  }

  #mismatch(node: Expression, expected: CelType, actual: CelType): void {
    this.#report(node, `expected type '${formatType(expected)}' but found '${formatType(actual)}'`, [MIXING_HINT]);
  }

  #report(node: Expression, message: string, hints: readonly string[] = []): void {
    const range = { start: node.position, end: node.end };
    this.issues.push(this.#checked.source.issue(message, range, { hints, expressionId: node.id }));
  }
}
