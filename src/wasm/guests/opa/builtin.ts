import type { RE2JS } from 're2js';
import { WasmError } from '../../binary/errors.ts';
import { BuiltinError } from './errors.ts';
import { int64Of, RegoNumber } from './number.ts';
import { isArray, RegoObject, RegoSet, typeName } from './value.ts';
import type { RegoTypeName, RegoValue } from './value.ts';

/**
 * State that builtins use besides their operands. One per evaluation; some parts are shared by all evaluations of a
 * guest.
 */
export interface BuiltinContext {
  /** Unix time in nanoseconds, constant during one evaluation, as in OPA. */
  readonly nowNs: bigint;
  /** Random results of this evaluation by builtin and operands: as in OPA, equal calls return equal results. */
  readonly randomResults: Map<string, RegoValue>;
  /** Compiled patterns by text. Shared between evaluations: guests cannot observe whether a pattern is cached. */
  readonly patterns: Map<string, RE2JS>;
  /** Charges fuel for work that is not proportional to the sizes of operands and result. */
  readonly charge: (fuel: number) => void;
  /** The policy's log. */
  readonly log: (text: string) => void;
}

/**
 * A function that the host provides to Rego modules. A call is undefined if the function returns undefined or throws
 * BuiltinError. Any other error aborts the evaluation.
 */
export type OpaBuiltin = (operands: readonly RegoValue[], context: BuiltinContext) => RegoValue | undefined;

/** Builtins by their Rego names. */
export type OpaBuiltins = ReadonlyMap<string, OpaBuiltin>;

/** Fuel per character that a builtin creates: 5 ns, at 2 × 10⁹ units per second of a Rego guest. */
export const FUEL_PER_CHAR = 10;

/** Maximum length of a builtin's result as text: above any admission review (3 MiB), far below a guest's memory. */
export const MAX_RESULT_CHARS = 4 * 1024 * 1024;

/**
 * Charges for the characters of a result, before they are made.
 * @throws WasmError `out-of-fuel` above {@link MAX_RESULT_CHARS}
 */
export function boundedChars(name: string, context: BuiltinContext): (chars: number) => void {
  let made = 0;
  return (chars) => {
    made += chars;
    if (made > MAX_RESULT_CHARS) {
      throw new WasmError('out-of-fuel', `${name}: the result exceeds ${MAX_RESULT_CHARS} characters`);
    }
    context.charge(chars * FUEL_PER_CHAR);
  };
}

/** An operand of a builtin, by its index from 0. @throws BuiltinError `operand-type` if it is missing */
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

/** An integer operand within int64. */
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

/** A collection of strings. */
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

/** Throws a BuiltinError, which makes the call undefined. */
export function undefinedBecause(message: string, cause?: unknown): never {
  throw new BuiltinError('operand-value', message, cause === undefined ? undefined : { cause });
}
