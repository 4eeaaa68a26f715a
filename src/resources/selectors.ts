import type { FieldError } from './field-error.ts';
import { forbidden, invalid, required } from './field-error.ts';
import { compareBytes, quoteText } from './go-text.ts';
import { isJsonObject } from './json.ts';
import { labelValueProblems, qualifiedNameProblems } from './name-rules.ts';

/** How a requirement compares, as selectors in text spell it. */
export type SelectorOperator = '=' | '==' | '!=' | 'in' | 'notin' | 'exists' | '!' | 'gt' | 'lt';

/** One requirement of a {@link Selector}. */
export interface LabelRequirement {
  readonly key: string;
  readonly operator: SelectorOperator;
  readonly values: readonly string[];
}

/** Labels, or whatever has values by name. Only own properties count. */
export type Labels = Readonly<Record<string, string>>;

/** A selector cannot be read. The message is that of API servers. */
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
    this.requirements = requirements.toSorted((left, right) => compareBytes(left.key, right.key));
    this.#isNothing = isNothing;
  }

  /** Whether nothing is asked of the labels. */
  get isEmpty(): boolean {
    return !this.#isNothing && this.requirements.length === 0;
  }

  matches(labels: Labels | undefined): boolean {
    return !this.#isNothing && this.requirements.every((requirement) => holds(requirement, labels ?? {}));
  }

  /** The selector as the text that API servers take in queries. */
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
  const sorted = values.toSorted(compareBytes).join(',');
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

/** A requirement that is checked as API servers check it. */
function checkedRequirement(key: string, operator: SelectorOperator, values: readonly string[]): LabelRequirement {
  const problems = new Set<string>();
  const keyProblems = qualifiedNameProblems(key);
  const add = (error: FieldError): void => void problems.add(`${error.field}: ${error.message}`);
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

/**
 * Reads a label selector as `kubectl -l` and queries have it: `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`.
 *
 * @throws SelectorError in an API server's words.
 */
export function parseLabelSelector(text: string): Selector {
  return new LabelSelectorParser(text).parse();
}

type Token =
  | { readonly kind: 'identifier' | 'end'; readonly text: string }
  | { readonly kind: 'symbol'; readonly text: '(' | ')' | ',' | '!' | '=' | '==' | '!=' | '>' | '<' };

const BINARY_OPERATORS: ReadonlyMap<string, SelectorOperator> = new Map([
  ['in', 'in'],
  ['notin', 'notin'],
  ['=', '='],
  ['==', '=='],
  ['!=', '!='],
  ['>', 'gt'],
  ['<', 'lt'],
]);

const TOKEN = /[ \t\r\n]*(?:(?<symbol>==|!=|[=!(),<>])|(?<word>[^=!(),<> \t\r\n]+)|$)/uy;

function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = [];
  const pattern = new RegExp(TOKEN);
  for (;;) {
    const { symbol, word } = pattern.exec(text)?.groups ?? {};
    if (symbol !== undefined) {
      tokens.push({ kind: 'symbol', text: symbol } as Token);
    } else if (word === undefined) {
      tokens.push({ kind: 'end', text: '' });
      return tokens;
    } else {
      tokens.push({ kind: 'identifier', text: word });
    }
  }
}

class LabelSelectorParser {
  readonly #tokens: readonly Token[];
  #position = 0;

  constructor(text: string) {
    this.#tokens = tokensOf(text);
  }

  parse(): Selector {
    const requirements: LabelRequirement[] = [];
    for (;;) {
      if (this.#next.kind === 'end') {
        return new Selector(requirements);
      }
      if (!this.#startsRequirement()) {
        throw new SelectorError(`found '${this.#next.text}', expected: !, identifier, or 'end of string'`);
      }
      try {
        requirements.push(this.#requirement());
      } catch (error) {
        throw error instanceof SelectorError
          ? new SelectorError(`unable to parse requirement: ${error.message}`)
          : error;
      }
      const after = this.#take();
      if (after.kind === 'end') {
        return new Selector(requirements);
      }
      if (!isSymbol(after, ',')) {
        throw new SelectorError(`found '${after.text}', expected: ',' or 'end of string'`);
      }
      if (!this.#startsRequirement()) {
        throw new SelectorError(`found '${this.#next.text}', expected: identifier after ','`);
      }
    }
  }

  get #next(): Token {
    return this.#tokens[this.#position] ?? { kind: 'end', text: '' };
  }

  #take(): Token {
    const token = this.#next;
    this.#position += 1;
    return token;
  }

  #startsRequirement(): boolean {
    return this.#next.kind === 'identifier' || isSymbol(this.#next, '!');
  }

  #requirement(): LabelRequirement {
    const isNegated = isSymbol(this.#next, '!');
    if (isNegated) {
      this.#take();
    }
    const key = this.#identifier();
    const problems = qualifiedNameProblems(key);
    if (problems.length > 0) {
      throw new SelectorError(`<nil>: ${invalid('', key, problems.join('; ')).message}`);
    }
    if (isNegated || this.#next.kind === 'end' || isSymbol(this.#next, ',')) {
      return checkedRequirement(key, isNegated ? '!' : 'exists', []);
    }
    const found = this.#take();
    const operator = BINARY_OPERATORS.get(found.text);
    if (operator === undefined) {
      throw new SelectorError(`found '${found.text}', expected: in, notin, =, ==, !=, gt, lt`);
    }
    const values = operator === 'in' || operator === 'notin' ? this.#values() : [this.#exactValue()];
    return checkedRequirement(key, operator, values);
  }

  #identifier(): string {
    const token = this.#take();
    if (token.kind !== 'identifier') {
      throw new SelectorError(`found '${token.text}', expected: identifier`);
    }
    return token.text;
  }

  #exactValue(): string {
    return this.#next.kind === 'end' || isSymbol(this.#next, ',') ? '' : this.#identifier();
  }

  /** `(a,b)`; empty values are allowed, also as `()`. */
  #values(): readonly string[] {
    const open = this.#take();
    if (!isSymbol(open, '(')) {
      throw new SelectorError(`found '${open.text}' expected: '('`);
    }
    if (isSymbol(this.#next, ')')) {
      this.#take();
      return [''];
    }
    if (this.#next.kind !== 'identifier' && !isSymbol(this.#next, ',')) {
      throw new SelectorError(`found '${this.#next.text}', expected: ',', ')' or identifier`);
    }
    const values = new Set<string>();
    for (;;) {
      if (this.#next.kind !== 'identifier' && !isSymbol(this.#next, ',') && !isSymbol(this.#next, ')')) {
        throw new SelectorError(`found '${this.#next.text}', expected: ',', or identifier`);
      }
      values.add(this.#next.kind === 'identifier' ? this.#take().text : '');
      const token = this.#take();
      if (isSymbol(token, ')')) {
        return [...values].toSorted(compareBytes);
      }
      if (!isSymbol(token, ',')) {
        throw new SelectorError(`found '${token.text}', expected: ',' or ')'`);
      }
    }
  }
}

function isSymbol(token: Token, text: string): boolean {
  return token.kind === 'symbol' && token.text === text;
}

const OBJECT_OPERATORS: ReadonlyMap<unknown, SelectorOperator> = new Map<unknown, SelectorOperator>([
  ['In', 'in'],
  ['NotIn', 'notin'],
  ['Exists', 'exists'],
  ['DoesNotExist', '!'],
]);

/**
 * Reads a `metav1.LabelSelector`. As in API servers an absent one selects nothing, an empty one everything.
 *
 * @throws SelectorError in an API server's words.
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
      throw new SelectorError(`${quoteText(textOf(given['operator']))} is not a valid label selector operator`);
    }
    requirements.push(checkedRequirement(textOf(given['key']), operator, valuesOf(given['values'])));
  }
  return new Selector(requirements);
}

/** What is wrong with a `metav1.LabelSelector` at a path; its shape is taken to be right. */
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

/** What is wrong with labels at a path. */
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

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function valuesOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(textOf) : [];
}

/** One requirement of a {@link FieldSelector}. */
export interface FieldRequirement {
  readonly field: string;
  readonly operator: '=' | '!=';
  readonly value: string;
}

/** Selects by fields such as `metadata.name`: all requirements must hold. A field that is not there is empty. */
export class FieldSelector {
  readonly requirements: readonly FieldRequirement[];

  constructor(requirements: readonly FieldRequirement[]) {
    this.requirements = requirements;
  }

  get isEmpty(): boolean {
    return this.requirements.length === 0;
  }

  matches(fields: Labels): boolean {
    return this.requirements.every(({ field, operator, value }) => {
      const actual = Object.hasOwn(fields, field) ? fields[field] : '';
      return (actual === value) === (operator === '=');
    });
  }

  /** The value that a field must have, where the selector asks for one. */
  exactValueOf(field: string): string | undefined {
    return this.requirements.find((one) => one.field === field && one.operator === '=')?.value;
  }

  /** The selector as the text that API servers take in queries. */
  toString(): string {
    return this.requirements
      .map(({ field, operator, value }) => `${field}${operator}${value.replaceAll(/[\\,=]/gu, String.raw`\$&`)}`)
      .join(',');
  }
}

/**
 * Reads a field selector as queries have it: `metadata.name=a,spec.nodeName!=b`. `\` escapes `,`, `=` and itself.
 *
 * @throws SelectorError in an API server's words.
 */
export function parseFieldSelector(text: string): FieldSelector {
  const terms = splitTerms(text)
    .filter((term) => term !== '')
    .toSorted(compareBytes);
  return new FieldSelector(
    terms.map((term) => {
      const at = term.search(/!=|=/u);
      if (at === -1) {
        throw new SelectorError(`invalid selector: '${text}'; can't understand '${term}'`);
      }
      const sign = ['!=', '=='].find((one) => term.startsWith(one, at)) ?? '=';
      const value = unescapeValue(term.slice(at + sign.length));
      return { field: term.slice(0, at), operator: sign === '!=' ? '!=' : '=', value };
    }),
  );
}

/** The parts between commas that are not escaped. */
function splitTerms(text: string): readonly string[] {
  const terms: string[] = [];
  let start = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === '\\') {
      at += 1;
    } else if (text[at] === ',') {
      terms.push(text.slice(start, at));
      start = at + 1;
    }
  }
  return [...terms, text.slice(start)];
}

function unescapeValue(text: string): string {
  let value = '';
  const letters = Array.from(text);
  for (let at = 0; at < letters.length; at += 1) {
    let letter = letters[at] ?? '';
    if (letter === '\\') {
      at += 1;
      letter = letters[at] ?? '';
      if (letter !== '\\' && letter !== ',' && letter !== '=') {
        throw new SelectorError(`invalid field selector: invalid escape sequence: \\${letter}`);
      }
    } else if (letter === ',' || letter === '=') {
      throw new SelectorError(`invalid field selector: unescaped character in value: ${String(letter.codePointAt(0))}`);
    }
    value += letter;
  }
  return value;
}
