import { RE2JS } from 're2js';
import { patternProblem } from '../../../go/index.ts';
import { failTemplate } from '../../../go/templates/index.ts';
import { boundedList } from '../rendering/bounded-list.ts';
import { MAX_PATTERN_LENGTH } from '../rendering/limits.ts';
import { intOperand, textOperand } from '../rendering/operands.ts';
import { counted, withMust } from '../rendering/rendering.ts';
import type { FunctionRow, Rendering } from '../rendering/rendering.ts';

/** Instructions of a pattern, times characters of the text, in the time of a step: 20 ns each. */
const WORK_PER_STEP = 32;

/**
 * A search may scan all the remaining text for a short match, but rarely does: the charge is the worst case divided by
 * this number. The time of a rendering's steps grows by the same factor at most.
 */
const LOOKAHEAD_DIVISOR = 4;

interface Match {
  readonly start: number;
  readonly end: number;
  /** Its groups by number; undefined for those without a match. */
  readonly groups: readonly (string | undefined)[];
  readonly named: (name: string) => string | undefined;
}

function compiled(pattern: string, { meter }: Rendering): RE2JS {
  if (pattern.length > MAX_PATTERN_LENGTH) {
    failTemplate(`a regular expression is longer than ${MAX_PATTERN_LENGTH} characters`);
  }
  const problem = patternProblem(pattern);
  if (problem !== undefined) {
    failTemplate(`a regular expression: ${problem}`);
  }
  let re2: RE2JS;
  try {
    re2 = RE2JS.compile(pattern);
  } catch {
    return failTemplate('not a valid regular expression in RE2 syntax');
  }
  meter.steps(pattern.length + re2.programSize());
  return re2;
}

/** Matches without overlaps, as Go finds them: no empty match directly after another match. */
function* matchesOf(pattern: RE2JS, text: string, rendering: Rendering): Generator<Match> {
  const matcher = pattern.matcher(text);
  const size = pattern.programSize() / WORK_PER_STEP;
  let at = 0;
  let previousEnd = -1;
  while (at <= text.length) {
    rendering.meter.steps(1 + (size * (text.length - at)) / LOOKAHEAD_DIVISOR);
    if (!matcher.find(at)) {
      return;
    }
    const [start, end] = [matcher.start(), matcher.end()];
    if (end > start || start !== previousEnd) {
      const groups = Array.from({ length: matcher.groupCount() + 1 }, (_, index) => matcher.group(index) ?? undefined);
      yield { start, end, groups, named: (name) => groupNamed(matcher, name) };
      previousEnd = end;
    }
    at = end > at ? end : at + ((text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1);
  }
}

function groupNamed(matcher: ReturnType<RE2JS['matcher']>, name: string): string | undefined {
  try {
    return matcher.group(name) ?? undefined;
  } catch {
    return undefined;
  }
}

const REFERENCE = /\$(?:(\$)|\{(\w+)\}|(\w+))/g;

/** Replaces `$1`, `${name}` and `$$`, as Go's regexp.Expand. */
function expanded(replacement: string, { groups, named }: Match): string {
  return replacement.replace(REFERENCE, (_, dollar?: string, braced?: string, plain?: string) => {
    const name = braced ?? plain ?? '';
    return dollar ?? (/^\d+$/.test(name) ? groups[Number(name)] : named(name)) ?? '';
  });
}

function replacedAll(
  pattern: string,
  text: string,
  replacementOf: (match: Match) => string,
  rendering: Rendering,
): string {
  const parts: string[] = [];
  let at = 0;
  for (const match of matchesOf(compiled(pattern, rendering), text, rendering)) {
    const replacement = replacementOf(match);
    rendering.meter.chars(match.start - at + replacement.length);
    parts.push(text.slice(at, match.start), replacement);
    at = match.end;
  }
  return [...parts, text.slice(at)].join('');
}

/** @param most below zero for all */
function found(pattern: string, text: string, most: number, rendering: Rendering): readonly string[] {
  const texts: string[] = [];
  for (const { start, end } of matchesOf(compiled(pattern, rendering), text, rendering)) {
    if (texts.length === most) {
      break;
    }
    texts.push(text.slice(start, end));
  }
  return boundedList(texts, rendering);
}

/** As Go's regexp.Split. */
function split(pattern: string, text: string, most: number, rendering: Rendering): readonly string[] {
  if (most === 0) {
    return [];
  }
  const parts: string[] = [];
  let at = 0;
  let lastStart = 0;
  for (const { start, end } of matchesOf(compiled(pattern, rendering), text, rendering)) {
    if (most > 0 && parts.length === most - 1) {
      break;
    }
    if (end > 0) {
      parts.push(text.slice(at, start));
    }
    [lastStart, at] = [start, end];
  }
  const hasRest = lastStart !== text.length || text === '';
  return boundedList(hasRest ? [...parts, text.slice(at)] : parts, rendering);
}

const ROWS: readonly FunctionRow[] = [
  [
    'regexMatch',
    counted(2, 2, (operands, rendering) => {
      const [pattern, text] = [compiled(textOperand(operands, 0), rendering), textOperand(operands, 1)];
      rendering.meter.steps((pattern.programSize() * text.length) / WORK_PER_STEP);
      return pattern.test(text);
    }),
  ],
  [
    'regexFind',
    counted(
      2,
      2,
      (operands, rendering) => found(textOperand(operands, 0), textOperand(operands, 1), 1, rendering)[0] ?? '',
    ),
  ],
  [
    'regexFindAll',
    counted(3, 3, (operands, rendering) =>
      found(textOperand(operands, 0), textOperand(operands, 1), intOperand(operands, 2), rendering),
    ),
  ],
  [
    'regexReplaceAll',
    counted(3, 3, (operands, rendering) => {
      const replacement = textOperand(operands, 2);
      return replacedAll(
        textOperand(operands, 0),
        textOperand(operands, 1),
        (match) => expanded(replacement, match),
        rendering,
      );
    }),
  ],
  [
    'regexReplaceAllLiteral',
    counted(3, 3, (operands, rendering) => {
      const replacement = textOperand(operands, 2);
      return replacedAll(textOperand(operands, 0), textOperand(operands, 1), () => replacement, rendering);
    }),
  ],
  [
    'regexSplit',
    counted(3, 3, (operands, rendering) =>
      split(textOperand(operands, 0), textOperand(operands, 1), intOperand(operands, 2), rendering),
    ),
  ],
];

export const PATTERN_FUNCTIONS: readonly FunctionRow[] = [
  ...withMust(ROWS),
  ['regexQuoteMeta', counted(1, 1, (operands) => textOperand(operands, 0).replace(/[\\.+*?()|[\]{}^$]/g, '\\$&'))],
];
