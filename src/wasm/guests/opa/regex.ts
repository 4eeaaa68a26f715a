import { RE2JS } from 're2js';
import { patternSize } from '../../../go/index.ts';
import { WasmError } from '../../binary/errors.ts';
import { FUEL_PER_CHAR, intOperand, MAX_RESULT_CHARS, operand, stringOperand, undefinedBecause } from './builtin.ts';
import type { BuiltinContext, OpaBuiltin } from './builtin.ts';
import type { RegoValue } from './value.ts';
import { BuiltinError } from './errors.ts';

/** Maximum number of cached patterns per guest, as in OPA. */
const MAX_CACHED_PATTERNS = 100;

/** Maximum length of a pattern: far above that of policies, because compile time grows with it. */
const MAX_PATTERN_CHARS = 64 * 1024;

/**
 * Maximum number of instructions, known before they are made: half a second, and 80 to 180 bytes for each. Fuel of the default limit
 * ends with twice as many.
 */
const MAX_PATTERN_INSTRUCTIONS = 200_000;

// Charges are measured times, converted at 2 × 10⁹ units of fuel per second, the speed of a Rego guest.

/** Fuel per character of a pattern, charged before it is compiled. */
const FUEL_PER_PATTERN_CHAR = 250;

/** Fuel per instruction of a compiled pattern: 1.2 µs. */
const FUEL_PER_INSTRUCTION = 2500;

/** Fuel per character of the text and instruction of the pattern: 10 to 20 ns. */
const FUEL_PER_STEP = 40;

/** Every step copies the positions of the capture groups: with this many groups, it takes twice the time. */
const GROUPS_PER_STEP = 16;

/** Fuel per reference in a replacement. */
const FUEL_PER_REFERENCE = 200;

/**
 * A search with repetitions may scan all the remaining text and match only its beginning, but rarely does. A charge for the
 * worst case would make splitting a long text into lines as expensive as an attack. The charge is the worst case divided by
 * this number, so an attack can take up to 16 times the time of its fuel; the deadline aborts it.
 */
const LOOKAHEAD_DIVISOR = 16;

function compile(pattern: string, context: BuiltinContext): RE2JS {
  const cached = context.patterns.get(pattern);
  if (cached !== undefined) {
    return cached;
  }
  if (pattern.length > MAX_PATTERN_CHARS) {
    undefinedBecause(`regular expression longer than ${MAX_PATTERN_CHARS} characters`);
  }
  if (patternSize(pattern) > MAX_PATTERN_INSTRUCTIONS) {
    undefinedBecause(`regular expression with more than ${MAX_PATTERN_INSTRUCTIONS} instructions`);
  }
  context.charge(pattern.length * FUEL_PER_PATTERN_CHAR);
  let compiled: RE2JS;
  try {
    compiled = RE2JS.compile(pattern);
  } catch (error) {
    return undefinedBecause('not a valid regular expression', error);
  }
  context.charge(compiled.programSize() * FUEL_PER_INSTRUCTION);
  if (context.patterns.size >= MAX_CACHED_PATTERNS) {
    context.patterns.delete(context.patterns.keys().next().value ?? '');
  }
  context.patterns.set(pattern, compiled);
  return compiled;
}

/** Start and end of a match and of its groups; -1 for a group without a match. */
type Match = readonly (readonly [number, number])[];

/** All matches without overlaps, as Go finds them: no empty match directly after another match. */
function* matchesOf(pattern: RE2JS, text: string, limit: number, context: BuiltinContext): Generator<Match> {
  const matcher = pattern.matcher(text);
  const size = pattern.programSize();
  const fuelPerChar = size * (1 + matcher.groupCount() / GROUPS_PER_STEP) * FUEL_PER_STEP;
  const lookaheadDivisor = /[*+{]/.test(pattern.pattern()) ? LOOKAHEAD_DIVISOR : Infinity;
  let at = 0;
  let previousEnd = -1;
  let found = 0;
  while (found !== limit && at <= text.length) {
    const remaining = text.length - at;
    // Without repetitions, no match is longer than the pattern.
    context.charge(fuelPerChar * (1 + Math.max(Math.min(remaining, size), remaining / lookaheadDivisor)));
    if (!matcher.find(at)) {
      context.charge(fuelPerChar * remaining);
      return;
    }
    const match: Match = Array.from({ length: matcher.groupCount() + 1 }, (_, group) => [
      matcher.start(group),
      matcher.end(group),
    ]);
    const [start, end] = match[0] ?? [0, 0];
    context.charge(fuelPerChar * (end - at));
    const isEmptyAgain = end === at && start === previousEnd;
    at = end === at ? at + runeLength(text, at) : end;
    previousEnd = end;
    if (!isEmptyAgain) {
      found += 1;
      yield match;
    }
  }
}

function runeLength(text: string, at: number): number {
  return (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
}

function textOf(text: string, [start, end]: readonly [number, number]): string {
  return start < 0 ? '' : text.slice(start, end);
}

const replace: OpaBuiltin = (operands, context) => {
  const text = stringOperand(operands, 0);
  const pattern = stringOperand(operands, 1);
  const replacement = stringOperand(operands, 2);
  const compiled = compile(pattern, context);
  const names = compiled.namedGroups();
  const references = replacement.split('$').length;
  const parts: string[] = [];
  let last = 0;
  let chars = 0;
  for (const match of matchesOf(compiled, text, -1, context)) {
    const [start, end] = match[0] ?? [0, 0];
    context.charge(references * FUEL_PER_REFERENCE);
    const expanded = expand(replacement, match, names, text);
    context.charge((start - last + expanded.length) * FUEL_PER_CHAR);
    chars += start - last + expanded.length;
    if (chars > MAX_RESULT_CHARS) {
      throw new WasmError('out-of-fuel', `regex.replace: the result exceeds ${MAX_RESULT_CHARS} characters`);
    }
    parts.push(text.slice(last, start), expanded);
    last = end;
  }
  parts.push(text.slice(last));
  return parts.join('');
};

const REFERENCE = /\$(?:\$|\{([\p{L}\p{Nd}_]+)\}|([\p{L}\p{Nd}_]+))/gu;

/**
 * Expands Go's replacement template: `$1`, `$name`, `${name}`, `$$`. The longest name counts: `$1x` is the group "1x".
 */
function expand(template: string, match: Match, names: Readonly<Record<string, number>>, text: string): string {
  return template.replace(REFERENCE, (reference, braced?: string, bare?: string) => {
    const name = braced ?? bare;
    if (name === undefined) {
      return reference.slice(1);
    }
    const index = /^\d+$/.test(name) ? Number(name) : Object.hasOwn(names, name) ? names[name] : undefined;
    const group = index === undefined ? undefined : match[index];
    return group === undefined ? '' : textOf(text, group);
  });
}

const split: OpaBuiltin = (operands, context) => {
  const pattern = stringOperand(operands, 0);
  const text = stringOperand(operands, 1);
  const compiled = compile(pattern, context);
  if (pattern !== '' && text === '') {
    return [''];
  }
  const parts: RegoValue[] = [];
  let start = 0;
  let end = 0;
  for (const match of matchesOf(compiled, text, -1, context)) {
    const [from, to] = match[0] ?? [0, 0];
    end = from;
    if (to !== 0) {
      parts.push(text.slice(start, end));
    }
    start = to;
  }
  if (end !== text.length) {
    parts.push(text.slice(start));
  }
  return parts;
};

const findN: OpaBuiltin = (operands, context) => {
  const pattern = stringOperand(operands, 0);
  const text = stringOperand(operands, 1);
  const limit = Number(intOperand(operands, 2));
  return Array.from(matchesOf(compile(pattern, context), text, limit < 0 ? -1 : limit, context), (match) =>
    textOf(text, match[0] ?? [0, 0]),
  );
};

const findSubmatches: OpaBuiltin = (operands, context) => {
  const pattern = stringOperand(operands, 0);
  const text = stringOperand(operands, 1);
  const limit = Number(intOperand(operands, 2));
  return Array.from(matchesOf(compile(pattern, context), text, limit < 0 ? -1 : limit, context), (match) =>
    match.map((group) => textOf(text, group)),
  );
};

const isValid: OpaBuiltin = (operands, context) => {
  const pattern = operand(operands, 0);
  if (typeof pattern !== 'string') {
    return false;
  }
  try {
    compile(pattern, context);
    return true;
  } catch (error) {
    if (error instanceof BuiltinError) {
      return false;
    }
    throw error;
  }
};

const match: OpaBuiltin = (operands, context) => {
  const pattern = stringOperand(operands, 0);
  return isMatch(compile(pattern, context), stringOperand(operands, 1), context);
};

function isMatch(pattern: RE2JS, text: string, context: BuiltinContext): boolean {
  context.charge(pattern.programSize() * (text.length + 1) * FUEL_PER_STEP);
  return pattern.matcher(text).find();
}

const templateMatch: OpaBuiltin = (operands, context) => {
  const template = stringOperand(operands, 0);
  const text = stringOperand(operands, 1);
  const start = delimiter(operands, 2);
  const end = delimiter(operands, 3);
  return isMatch(compile(templatePattern(template, start, end, context), context), text, context);
};

/** OPA indexes bytes here, so a delimiter must be an ASCII character. */
function delimiter(operands: readonly RegoValue[], index: number): string {
  const text = stringOperand(operands, index);
  return text.length === 1 && text <= '\u007f' ? text : undefinedBecause('a delimiter must be one character');
}

/** The text between the delimiters is a pattern, the rest is literal. */
function templatePattern(template: string, start: string, end: string, context: BuiltinContext): string {
  let pattern = '^';
  let literalFrom = 0;
  let openedAt = 0;
  let level = 0;
  for (const [index, character] of template.split('').entries()) {
    if (character === start) {
      level += 1;
      openedAt = level === 1 ? index : openedAt;
    } else if (character === end) {
      level -= 1;
      if (level === 0) {
        const inner = template.slice(openedAt + 1, index);
        compile(`^${inner}$`, context);
        pattern += `${RE2JS.quote(template.slice(literalFrom, openedAt))}(${inner})`;
        literalFrom = index + 1;
      }
    }
    if (level < 0) {
      break;
    }
  }
  return level === 0
    ? `${pattern}${RE2JS.quote(template.slice(literalFrom))}$`
    : undefinedBecause('unbalanced delimiters');
}

/** Special characters of a glob. */
const GLOB_SPECIAL = /[*?\\[\]{}]/g;

const globQuoteMeta: OpaBuiltin = (operands) => stringOperand(operands, 0).replace(GLOB_SPECIAL, '\\$&');

export const regexBuiltins: readonly (readonly [string, OpaBuiltin])[] = [
  ['regex.replace', replace],
  ['regex.split', split],
  ['regex.find_n', findN],
  ['regex.find_all_string_submatch_n', findSubmatches],
  ['regex.is_valid', isValid],
  ['regex.match', match],
  ['re_match', match],
  ['regex.template_match', templateMatch],
  ['glob.quote_meta', globQuoteMeta],
];
