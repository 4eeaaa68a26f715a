import { compareStrings, quote } from '../go/index.ts';
import type { FieldError } from './field-error.ts';
import { forbidden, invalid, required } from './field-error.ts';
import { isJsonObject, textOf } from '../values/index.ts';
import { labelValueProblems, qualifiedNameProblems } from '../names/index.ts';

/** Operators of requirements, in the spelling of selector strings. */
export type SelectorOperator = '=' | '==' | '!=' | 'in' | 'notin' | 'exists' | '!' | 'gt' | 'lt';

/** One requirement of a {@link Selector}. */
export interface LabelRequirement {
  readonly key: string;
  readonly operator: SelectorOperator;
  readonly values: readonly string[];
}

/** Labels, or other values by name. Only own properties count. */
export type Labels = Readonly<Record<string, string>>;

/** An invalid selector. The message is that of API servers. */
export class SelectorError extends Error {
  override readonly name = 'SelectorError';
}

/** Selects by labels: all requirements must hold. */
export class Selector {
  readonly requirements: readonly LabelRequirement[];
  readonly #isNothing: boolean;

  /** Selects everything. */
  static readonly EVERYTHING: Selector = new Selector([]);
  /** Selects nothing. */
  static readonly NOTHING: Selector = new Selector([], true);

  constructor(requirements: readonly LabelRequirement[], isNothing = false) {
    this.requirements = requirements.toSorted((left, right) => compareStrings(left.key, right.key));
    this.#isNothing = isNothing;
  }

  /** Whether the selector has no requirements. */
  get isEmpty(): boolean {
    return !this.#isNothing && this.requirements.length === 0;
  }

  matches(labels: Labels | undefined): boolean {
    return !this.#isNothing && this.requirements.every((requirement) => holds(requirement, labels ?? {}));
  }

  /** The selector in the format of queries. */
  toString(): string {
    return this.requirements.map(requirementText).join(',');
  }
}

function holds({ key, operator, values }: LabelRequirement, labels: Labels): boolean {
  const label = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case '=':
    case '==':
    case 'in':
      return label !== undefined && values.includes(label);
    case '!=':
    case 'notin':
      return label === undefined || !values.includes(label);
    case 'exists':
      return label !== undefined;
    case '!':
      return label === undefined;
    case 'gt':
    case 'lt': {
      const [number, bound] = [parseInt64(label), parseInt64(values[0])];
      return number !== undefined && bound !== undefined && (operator === 'gt' ? number > bound : number < bound);
    }
    default:
      return operator satisfies never;
  }
}

function requirementText({ key, operator, values }: LabelRequirement): string {
  const sorted = values.toSorted(compareStrings).join(',');
  switch (operator) {
    case 'exists':
      return key;
    case '!':
      return `!${key}`;
    case 'in':
    case 'notin':
      return `${key} ${operator} (${sorted})`;
    case 'gt':
      return `${key}>${sorted}`;
    case 'lt':
      return `${key}<${sorted}`;
    default:
      return `${key}${operator}${sorted}`;
  }
}

const MAX_INT64 = 2n ** 63n - 1n;

function parseInt64(text: string | undefined): bigint | undefined {
  if (text === undefined || !/^[+-]?[0-9]{1,40}$/u.test(text)) {
    return undefined;
  }
  const value = BigInt(text.replace(/^\+/u, ''));
  return value > MAX_INT64 || value < -MAX_INT64 - 1n ? undefined : value;
}

/** Maximum length of messages about one requirement; its other values are not checked. */
const MAX_PROBLEM_CHARACTERS = 64 * 1024;

/**
 * A requirement, validated like in API servers.
 *
 * @throws SelectorError with all mistakes.
 */
export function checkedRequirement(
  key: string,
  operator: SelectorOperator,
  values: readonly string[],
): LabelRequirement {
  const problems = new Set<string>();
  const keyProblems = qualifiedNameProblems(key);
  let characters = 0;
  const add = ({ field, message }: FieldError): void => {
    characters += field.length + message.length;
    problems.add(`${field}: ${message}`);
  };
  if (keyProblems.length > 0) {
    add(invalid('key', key, keyProblems.join('; ')));
  }
  if ((operator === 'in' || operator === 'notin') && values.length === 0) {
    add(invalid('values', values, "for 'in', 'notin' operators, values set can't be empty"));
  }
  if ((operator === 'exists' || operator === '!') && values.length > 0) {
    add(invalid('values', values, 'values set must be empty for exists and does not exist'));
  }
  if ((operator === 'gt' || operator === 'lt') && parseInt64(values[0]) === undefined) {
    add(invalid('values[0]', values[0] ?? '', "for 'Gt', 'Lt' operators, the value must be an integer"));
  }
  for (const [index, value] of values.entries()) {
    if (characters > MAX_PROBLEM_CHARACTERS) {
      break;
    }
    const valueProblems = labelValueProblems(value);
    if (valueProblems.length > 0) {
      add(invalid(`values[${index}][${key}]`, value, valueProblems.join('; ')));
    }
  }
  if (problems.size > 0) {
    const texts = [...problems];
    throw new SelectorError(texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`);
  }
  return { key, operator, values };
}

const OBJECT_OPERATORS: ReadonlyMap<unknown, SelectorOperator> = new Map<unknown, SelectorOperator>([
  ['In', 'in'],
  ['NotIn', 'notin'],
  ['Exists', 'exists'],
  ['DoesNotExist', '!'],
]);

/**
 * Parses a `metav1.LabelSelector`. As in API servers, an absent one selects nothing, an empty one everything.
 *
 * @throws SelectorError with the message of an API server.
 */
export function labelSelector(value: unknown): Selector {
  if (!isJsonObject(value)) {
    return Selector.NOTHING;
  }
  const requirements: LabelRequirement[] = [];
  for (const [key, label] of Object.entries(matchLabelsOf(value))) {
    requirements.push(checkedRequirement(key, '=', [textOf(label)]));
  }
  for (const expression of matchExpressionsOf(value)) {
    const given = isJsonObject(expression) ? expression : {};
    const operator = OBJECT_OPERATORS.get(given['operator']);
    if (operator === undefined) {
      throw new SelectorError(`${quote(textOf(given['operator']))} is not a valid label selector operator`);
    }
    requirements.push(checkedRequirement(textOf(given['key']), operator, valuesOf(given['values'])));
  }
  return new Selector(requirements);
}

/** Mistakes in a `metav1.LabelSelector` with a valid shape, at a path. */
export function labelSelectorErrors(value: unknown, path: string): FieldError[] {
  if (!isJsonObject(value)) {
    return [];
  }
  return [
    ...labelErrors(matchLabelsOf(value), `${path}.matchLabels`),
    ...matchExpressionsOf(value).flatMap((expression, index) =>
      requirementErrors(isJsonObject(expression) ? expression : {}, `${path}.matchExpressions[${index}]`),
    ),
  ];
}

function requirementErrors(given: Readonly<Record<string, unknown>>, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const values = valuesOf(given['values']);
  const operator = OBJECT_OPERATORS.get(given['operator']);
  if (operator === undefined) {
    errors.push(invalid(`${path}.operator`, textOf(given['operator']), 'not a valid selector operator'));
  } else if ((operator === 'in' || operator === 'notin') && values.length === 0) {
    errors.push(required(`${path}.values`, "must be specified when `operator` is 'In' or 'NotIn'"));
  } else if ((operator === 'exists' || operator === '!') && values.length > 0) {
    errors.push(forbidden(`${path}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
  }
  const key = textOf(given['key']);
  errors.push(...qualifiedNameProblems(key).map((problem) => invalid(`${path}.key`, key, problem)));
  for (const [index, one] of values.entries()) {
    errors.push(...labelValueProblems(one).map((problem) => invalid(`${path}.values[${index}]`, one, problem)));
  }
  return errors;
}

/** Mistakes in labels at a path. */
export function labelErrors(labels: Readonly<Record<string, unknown>>, path: string): FieldError[] {
  return Object.entries(labels).flatMap(([key, value]) => [
    ...qualifiedNameProblems(key).map((problem) => invalid(path, key, problem)),
    ...labelValueProblems(textOf(value)).map((problem) => invalid(path, textOf(value), problem)),
  ]);
}

function matchLabelsOf(value: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const labels = Object.hasOwn(value, 'matchLabels') ? value['matchLabels'] : undefined;
  return isJsonObject(labels) ? labels : {};
}

function matchExpressionsOf(value: Readonly<Record<string, unknown>>): readonly unknown[] {
  const expressions = Object.hasOwn(value, 'matchExpressions') ? value['matchExpressions'] : undefined;
  return Array.isArray(expressions) ? expressions : [];
}

function valuesOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(textOf) : [];
}
