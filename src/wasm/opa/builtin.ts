import type { RE2JS } from 're2js';
import { BuiltinError } from './errors.ts';
import { int64Of, RegoNumber } from './number.ts';
import { isArray, RegoObject, RegoSet, typeName } from './value.ts';
import type { RegoTypeName, RegoValue } from './value.ts';

/** What a builtin may use besides its operands. One per guest; the parts that belong to one evaluation are replaced. */
export interface BuiltinContext {
  /** Unix time in nanoseconds, the same during one evaluation, as in OPA. */
  readonly nowNs: bigint;
  /** Random results of this evaluation by builtin and operands: OPA gives the same answer to the same question. */
  readonly drawn: Map<string, RegoValue>;
  /** Compiled patterns by their text. Kept between evaluations: guests cannot tell a hit from a miss. */
  readonly patterns: Map<string, RE2JS>;
  /** Takes fuel from the guest for work that is not proportional to the sizes of operands and result. */
  readonly charge: (fuel: number) => void;
  /** The policy's own log. */
  readonly log: (text: string) => void;
}

/**
 * One function that the host offers to Rego modules.
 * Undefined, and BuiltinError, make the call undefined. Any other error ends the evaluation.
 */
export type OpaBuiltin = (operands: readonly RegoValue[], context: BuiltinContext) => RegoValue | undefined;

/** Builtins by their Rego names. */
export type OpaBuiltins = ReadonlyMap<string, OpaBuiltin>;

/** Reads a builtin's operands; positions count from zero. */
export function operand(operands: readonly RegoValue[], index: number): RegoValue {
  const value = operands[index];
  if (value === undefined) {
    throw new BuiltinError('operand-type', `operand ${index + 1} is missing`);
  }
  return value;
}

export function stringOperand(operands: readonly RegoValue[], index: number): string {
  const value = operand(operands, index);
  return typeof value === 'string' ? value : wrongType(value, index, 'string');
}

export function numberOperand(operands: readonly RegoValue[], index: number): RegoNumber {
  const value = operand(operands, index);
  return value instanceof RegoNumber ? value : wrongType(value, index, 'number');
}

/** An operand that fits int64. */
export function intOperand(operands: readonly RegoValue[], index: number): bigint {
  const number = numberOperand(operands, index);
  const value = int64Of(number.text);
  if (value === undefined) {
    throw new BuiltinError('operand-type', `operand ${index + 1} must be an integer, got ${number.text}`);
  }
  return value;
}

export function arrayOperand(operands: readonly RegoValue[], index: number): readonly RegoValue[] {
  const value = operand(operands, index);
  return isArray(value) ? value : wrongType(value, index, 'array');
}

export function objectOperand(operands: readonly RegoValue[], index: number): RegoObject {
  const value = operand(operands, index);
  return value instanceof RegoObject ? value : wrongType(value, index, 'object');
}

/** The elements of an array, or of a set in Rego's order. */
export function collectionOperand(operands: readonly RegoValue[], index: number): readonly RegoValue[] {
  const value = operand(operands, index);
  if (value instanceof RegoSet) {
    return value.sorted();
  }
  return isArray(value) ? value : wrongType(value, index, 'array', 'set');
}

/** A collection of which every element is a string. */
export function stringsOperand(operands: readonly RegoValue[], index: number): readonly string[] {
  return collectionOperand(operands, index).map((item) =>
    typeof item === 'string' ? item : wrongType(item, index, 'string'),
  );
}

export function wrongType(value: RegoValue, index: number, ...expected: RegoTypeName[]): never {
  throw new BuiltinError(
    'operand-type',
    `operand ${index + 1}: expected ${expected.join(' or ')}, got ${typeName(value)}`,
  );
}

/** Ends a builtin with an undefined result. */
export function undefinedBecause(message: string, cause?: unknown): never {
  throw new BuiltinError('operand-value', message, cause === undefined ? undefined : { cause });
}
