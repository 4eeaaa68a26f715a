import type { CallExpression, Expression } from '../model/ast.ts';
import { nameOfType } from '../evaluate/index.ts';
import { type CelType, unwrapped } from '../model/type.ts';
import { FormatError, parseFormat } from './string-format.ts';
import type { FormatClause } from './string-format.ts';

/** An error in a call of `format`, with its node. */
interface FormatProblem {
  readonly message: string;
  readonly node: Expression;
}

type TypeOf = (node: Expression) => CelType;
type Kind = CelType['kind'];

interface ClauseRule {
  readonly kinds: readonly Kind[];
  readonly expectation: string;
}

const INTEGERS: readonly Kind[] = ['int', 'uint'];
const DOUBLES: readonly Kind[] = ['double', 'string'];
const HEX: ClauseRule = {
  kinds: [...INTEGERS, 'string', 'bytes'],
  expectation: 'only integers, byte buffers, and strings can be formatted as hex',
};

const RULES: Readonly<Record<Exclude<FormatClause['verb'], 's'>, ClauseRule>> = {
  d: { kinds: INTEGERS, expectation: 'decimal clause can only be used on integers' },
  f: { kinds: DOUBLES, expectation: 'fixed-point clause can only be used on doubles' },
  e: { kinds: DOUBLES, expectation: 'scientific clause can only be used on doubles' },
  b: { kinds: [...INTEGERS, 'bool'], expectation: 'only integers and bools can be formatted as binary' },
  o: { kinds: INTEGERS, expectation: 'octal clause can only be used on integers' },
  x: HEX,
  X: HEX,
};

const TEXT: ClauseRule = {
  kinds: ['list', 'map', 'int', 'uint', 'double', 'bool', 'string', 'timestamp', 'bytes', 'duration', 'type', 'null'],
  expectation:
    'string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps',
};

/**
 * Checks a call of `format` with a literal format and list, as API servers do at compile time. Returns undefined if the
 * call is valid or cannot be checked.
 */
export function checkFormat(call: CallExpression, typeOf: TypeOf): FormatProblem | undefined {
  const [list] = call.args;
  const format = call.target;
  if (format?.kind !== 'literal' || typeof format.value !== 'string' || list?.kind !== 'list') {
    return undefined;
  }
  let used = 0;
  for (const part of parseFormat(format.value)) {
    if (typeof part === 'string') {
      continue;
    }
    const argument = list.elements[used];
    const isMistake = part instanceof FormatError;
    if (isMistake && (part.isAtEnd || argument !== undefined)) {
      return { message: part.message, node: call };
    }
    if (isMistake || argument === undefined) {
      return { message: `index ${used} out of range`, node: call };
    }
    const problem = checkClause(part, argument, typeOf);
    if (problem !== undefined) {
      return { ...problem, message: `error during formatting: ${problem.message}` };
    }
    used++;
  }
  const count = list.elements.length;
  return count > used
    ? { message: `too many arguments supplied to string.format (expected ${used}, got ${count})`, node: call }
    : undefined;
}

function checkClause({ verb }: FormatClause, argument: Expression, typeOf: TypeOf): FormatProblem | undefined {
  return verb === 's' ? checkText(argument, typeOf) : checkKind(RULES[verb], argument, typeOf);
}

function checkKind(rule: ClauseRule, node: Expression, typeOf: TypeOf): FormatProblem | undefined {
  const type = unwrapped(typeOf(node));
  return type.kind === 'dyn' || rule.kinds.includes(type.kind)
    ? undefined
    : { message: `${rule.expectation}, was given ${nameOfType(type)}`, node };
}

/** An argument of `%s` and its contents, if it is a literal. The parser limits the nesting. */
function checkText(node: Expression, typeOf: TypeOf): FormatProblem | undefined {
  const problem = checkKind(TEXT, node, typeOf);
  if (problem !== undefined) {
    return problem;
  }
  for (const element of contentsOf(node)) {
    const problemOfElement = checkText(element, typeOf);
    if (problemOfElement !== undefined) {
      return problemOfElement;
    }
  }
  return undefined;
}

function contentsOf(node: Expression): readonly Expression[] {
  switch (node.kind) {
    case 'list':
      return node.elements;
    case 'map':
      return node.entries.flatMap(({ key, value }) => [key, value]);
    default:
      return [];
  }
}
