import { compareStrings, formatFloat, quote } from '../../go/index.ts';
import {
  CelDuration,
  CelTimestamp,
  CelTypeValue,
  doubleValue,
  findInMap,
  isInt,
  isList,
  isMap,
  keysOf,
  toText,
  typeNameOf,
} from '../evaluate/index.ts';
import { CelUint, EvaluationFailure } from '../model/value.ts';
import type { CelMap, CelRecord, CelResult, CelValue } from '../model/value.ts';
import { fail } from './declare.ts';
import { MAX_DEPTH, MAX_FORMATTED_LENGTH, MAX_WIDTH } from './limits.ts';

const DEFAULT_PRECISION = 6;

/** A `%` clause. */
export interface FormatClause {
  readonly verb: 's' | 'd' | 'f' | 'e' | 'b' | 'x' | 'X' | 'o';
  readonly precision: number | undefined;
}

/** A part of a format string: text, or a clause for the next argument. */
type FormatPart = string | FormatClause;

/** An error in a format string; the rest of the string is not parsed. */
export class FormatError {
  readonly message: string;
  /** Whether the string ends inside a clause, which is reported first at compile time. */
  readonly isAtEnd: boolean;

  constructor(message: string, isAtEnd = false) {
    this.message = message;
    this.isAtEnd = isAtEnd;
  }
}

/**
 * Parses a format string. An error is the last part, so it is found in the same order as in API servers: a missing
 * argument before an error in its clause.
 */
export function parseFormat(format: string): readonly (FormatPart | FormatError)[] {
  const parts: (FormatPart | FormatError)[] = [];
  let at = 0;
  while (at < format.length) {
    const percent = format.indexOf('%', at);
    if (percent !== at) {
      const end = percent < 0 ? format.length : percent;
      parts.push(format.slice(at, end));
      at = end;
    } else if (format[at + 1] === '%') {
      parts.push('%');
      at += 2;
    } else {
      const clause = parseClause(format, at + 1);
      parts.push(clause.part);
      if (clause.part instanceof FormatError) {
        break;
      }
      at = clause.end;
    }
  }
  return parts;
}

function parseClause(format: string, start: number): { part: FormatClause | FormatError; end: number } {
  const errorPart = (message: string) => ({ part: new FormatError(message), end: format.length });
  if (start >= format.length) {
    return { part: new FormatError('unexpected end of string', true), end: format.length };
  }
  let at = start;
  let precision: number | undefined;
  if (format[at] === '.') {
    const digits = digitsAt(format, at + 1);
    at += 1 + digits.length;
    const problem = precisionProblem(digits, at >= format.length);
    if (problem !== undefined) {
      return errorPart(`could not parse formatting clause: error while parsing precision: ${problem}`);
    }
    precision = Number(digits);
  }
  const verb = format.charAt(at);
  if (!isVerb(verb)) {
    // API servers show the first byte as if it were a character.
    const byte = String.fromCharCode(Buffer.from(format.slice(at, at + 2), 'utf8')[0] ?? 0);
    return errorPart(`could not parse formatting clause: unrecognized formatting clause "${byte}"`);
  }
  return { part: { verb, precision }, end: at + 1 };
}

function digitsAt(text: string, start: number): string {
  let end = start;
  while (end < text.length && text.charAt(end) >= '0' && text.charAt(end) <= '9') {
    end++;
  }
  return text.slice(start, end);
}

function tooPrecise(precision: number | bigint, max: number): string {
  return `precision ${precision} exceeds maximum allowed precision ${max}`;
}

function isVerb(text: string): text is FormatClause['verb'] {
  return text.length === 1 && 'sdfebxXo'.includes(text);
}

function precisionProblem(digits: string, isAtEnd: boolean): string | undefined {
  if (isAtEnd) {
    return 'could not find end of precision specifier';
  }
  const converting = `error while converting precision to integer: strconv.Atoi: parsing ${quote(digits)}`;
  if (digits === '') {
    return `${converting}: invalid syntax`;
  }
  const precision = BigInt(digits);
  if (precision >= 2n ** 63n) {
    return `${converting}: value out of range`;
  }
  return precision > MAX_WIDTH ? tooPrecise(precision, MAX_WIDTH) : undefined;
}

/** The value of `format.format(args)`. Numbers are printed as in American English, contents of lists as literals. */
export function formatText(format: string, args: readonly CelValue[]): CelResult {
  const writer = new FormatWriter();
  let used = 0;
  for (const part of parseFormat(format)) {
    if (typeof part === 'string') {
      writer.text(part);
      continue;
    }
    if (used >= args.length) {
      return fail(`index ${used} out of range`);
    }
    if (part instanceof FormatError) {
      return fail(part.message);
    }
    const problem = writer.clause(part, args[used] ?? null);
    if (problem !== undefined) {
      return fail(`error during formatting: ${problem}`);
    }
    used++;
  }
  return writer.isTooLong ? fail(TOO_LONG) : writer.result;
}

const TOO_LONG = `format: the result is too long: expected at most ${MAX_FORMATTED_LENGTH} characters`;
/** Characters that are printed in the time of a unit of work: values are quoted, and keys sorted. */
const CHARACTERS_PER_WORK = 2;

/** Work of a call, also of one that fails after all that it may print. */
export function formatWork(_args: readonly CelValue[], result: CelResult): number {
  const isTooLong = result instanceof EvaluationFailure && result.message === TOO_LONG;
  const printed = typeof result === 'string' ? result.length : isTooLong ? MAX_FORMATTED_LENGTH : 0;
  return printed / CHARACTERS_PER_WORK;
}

const TOO_DEEP = `values are nested too deep: expected at most ${MAX_DEPTH} levels`;

/** The error for a value that cannot be formatted; undefined on success. */
type Problem = string | undefined;

/** Collects the text. When it is too long, arguments are still checked, but no more text is collected. */
class FormatWriter {
  readonly #parts: string[] = [];
  #length = 0;

  get result(): string {
    return this.#parts.join('');
  }

  get isTooLong(): boolean {
    return this.#length > MAX_FORMATTED_LENGTH;
  }

  text(text: string): undefined {
    this.#length += text.length;
    if (!this.isTooLong) {
      this.#parts.push(text);
    }
  }

  clause(clause: FormatClause, value: CelValue): Problem {
    switch (clause.verb) {
      case 's':
        return this.#value(value, 0);
      case 'd':
        return this.#decimal(value);
      case 'f':
      case 'e':
        return this.#double(clause, value);
      case 'b':
        return this.#radix(value, 2, typeof value === 'boolean');
      case 'o':
        return this.#radix(value, 8, false);
      default:
        return this.#hex(clause.verb, value);
    }
  }

  #decimal(value: CelValue): Problem {
    const integer = integerOf(value);
    return integer === undefined ? given(EXPECTATIONS.d, value) : this.text(String(integer));
  }

  #double(clause: FormatClause, value: CelValue): Problem {
    const isFixed = clause.verb === 'f';
    const double = doubleValue(value) ?? namedDouble(value);
    if (double === undefined) {
      return given(EXPECTATIONS[isFixed ? 'f' : 'e'], value);
    }
    const precision = clause.precision ?? DEFAULT_PRECISION;
    return this.text(isFixed ? englishFixed(double, precision) : englishScientific(double, precision));
  }

  #radix(value: CelValue, radix: 2 | 8, isBool: boolean): Problem {
    const integer = isBool ? BigInt(value === true) : integerOf(value);
    return integer === undefined
      ? given(EXPECTATIONS[radix === 2 ? 'b' : 'o'], value)
      : this.text(integer.toString(radix));
  }

  #hex(verb: string, value: CelValue): Problem {
    const text = hexText(value);
    if (text === undefined) {
      return given(EXPECTATIONS.x, value);
    }
    return this.text(verb === 'X' ? text.toUpperCase() : text);
  }

  /** A value for `%s`; API servers print the contents of lists and maps as literals. */
  #value(value: CelValue, depth: number): Problem {
    if (depth > MAX_DEPTH || this.isTooLong) {
      return depth > MAX_DEPTH ? TOO_DEEP : undefined;
    }
    if (isList(value)) {
      return this.#list(value, depth);
    }
    if (isMap(value)) {
      return this.#map(value, depth);
    }
    const text = this.#scalar(value, depth > 0);
    return text instanceof EvaluationFailure ? text.message : this.text(text);
  }

  #list(list: readonly CelValue[], depth: number): Problem {
    this.text('[');
    for (let index = 0; index < list.length; index++) {
      if (index > 0) {
        this.text(', ');
      }
      const problem = this.#value(list[index] ?? null, depth + 1);
      if (problem !== undefined) {
        return problem;
      }
    }
    return this.text(']');
  }

  /** Entries in the order of their printed keys. */
  #map(map: CelRecord | CelMap, depth: number): Problem {
    const entries: { text: string; key: CelValue }[] = [];
    for (const key of keysOf(map)) {
      const text = this.#key(key);
      if (text instanceof EvaluationFailure) {
        return text.message;
      }
      entries.push({ text, key });
    }
    entries.sort((left, right) => compareStrings(left.text, right.text));
    this.text('{');
    for (const [index, entry] of entries.entries()) {
      this.text(`${index > 0 ? ', ' : ''}${entry.text}:`);
      const problem = this.#value(findInMap(map, entry.key) ?? null, depth + 1);
      if (problem !== undefined) {
        return problem;
      }
    }
    return this.text('}');
  }

  #key(key: CelValue): string | EvaluationFailure {
    const isKey = typeof key === 'string' || typeof key === 'boolean' || integerOf(key) !== undefined;
    return isKey ? this.#scalar(key, true) : fail(`no formatting function for map key of type ${typeNameOf(key)}`);
  }

  #scalar(value: CelValue, isElement: boolean): string | EvaluationFailure {
    if (!isFormattable(value)) {
      const name = typeNameOf(value);
      return fail(isElement ? `no formatting function for ${name}` : `${NOT_TEXT} ${name}`);
    }
    if (value === null) {
      return 'null';
    }
    return isElement ? literalText(value) : plainOrProblem(value);
  }
}

/** The accepted types of each clause, as error messages name them. */
const EXPECTATIONS = {
  d: 'decimal clause can only be used on integers',
  f: 'fixed-point clause can only be used on doubles',
  e: 'scientific clause can only be used on doubles',
  b: 'only integers and bools can be formatted as binary',
  o: 'octal clause can only be used on integers',
  x: 'only integers, byte buffers, and strings can be formatted as hex',
} as const;

const NOT_TEXT =
  'string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given';

function given(expectation: string, value: CelValue): string {
  return `${expectation}, was given ${typeNameOf(value)}`;
}

function isFormattable(value: CelValue): boolean {
  return (
    value === null ||
    typeof value !== 'object' ||
    value instanceof Uint8Array ||
    integerOf(value) !== undefined ||
    doubleValue(value) !== undefined ||
    value instanceof CelTimestamp ||
    value instanceof CelDuration ||
    value instanceof CelTypeValue
  );
}

function integerOf(value: CelValue): bigint | undefined {
  if (isInt(value)) {
    return BigInt(value);
  }
  return value instanceof CelUint ? value.value : undefined;
}

/** Strings that denote doubles in `%f` and `%e`. */
function namedDouble(value: CelValue): number | undefined {
  switch (value) {
    case 'NaN':
      return Number.NaN;
    case 'Infinity':
      return Infinity;
    case '-Infinity':
      return -Infinity;
    default:
      return undefined;
  }
}

function hexText(value: CelValue): string | undefined {
  if (typeof value === 'string') {
    return Buffer.from(value, 'utf8').toString('hex');
  }
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : integerOf(value)?.toString(16);
}

function plainOrProblem(value: CelValue): string | EvaluationFailure {
  const text = value instanceof CelTypeValue ? value.name : toText(value);
  return text instanceof EvaluationFailure ? fail(`could not convert argument ${quote(text.message)} to string`) : text;
}

/** A value in a list or map, as API servers print it. */
function literalText(value: CelValue): string | EvaluationFailure {
  const double = doubleValue(value);
  if (double !== undefined) {
    const text = formatFloat(double, 'f', DEFAULT_PRECISION);
    return Number.isFinite(double) ? text : quote(text);
  }
  const text = plainOrProblem(value);
  if (text instanceof EvaluationFailure) {
    return text;
  }
  if (typeof value === 'string') {
    return quote(text);
  }
  if (value instanceof Uint8Array) {
    return `b${quote(text)}`;
  }
  if (value instanceof CelTimestamp) {
    return `timestamp(${quote(text)})`;
  }
  return value instanceof CelDuration ? `duration(${quote(text)})` : text;
}

function englishSpecial(value: number): string | undefined {
  if (Number.isNaN(value)) {
    return 'NaN';
  }
  return Number.isFinite(value) ? undefined : `${value < 0 ? '-' : ''}∞`;
}

/** API servers keep one byte of the precision. */
const ENGLISH_PRECISIONS = 256;

/** Digits in groups of three. */
function englishFixed(value: number, precision: number): string {
  const special = englishSpecial(value);
  if (special !== undefined) {
    return special;
  }
  const [whole = '', fraction] = formatFloat(Math.abs(value), 'f', precision % ENGLISH_PRECISIONS).split('.');
  const grouped = whole.replace(/\B(?=(?:\d{3})+$)/g, ',');
  return `${value < 0 ? '-' : ''}${grouped}${fraction === undefined ? '' : `.${fraction}`}`;
}

const SUPERSCRIPTS = '⁰¹²³⁴⁵⁶⁷⁸⁹';

/** Always six digits: API servers use the precision as width. */
function englishScientific(value: number, width: number): string {
  return (englishSpecial(value) ?? englishPower(value)).padStart(width, ' ');
}

function englishPower(value: number): string {
  const [mantissa = '', exponent = ''] = formatFloat(Math.abs(value), 'e', DEFAULT_PRECISION).split('e');
  const raised = Array.from(exponent.slice(1), (digit) => SUPERSCRIPTS.charAt(Number(digit))).join('');
  return `${value < 0 ? '-' : ''}${mantissa}×10${exponent.startsWith('-') ? '⁻' : ''}${raised}`;
}
