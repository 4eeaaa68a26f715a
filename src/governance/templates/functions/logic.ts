import { kindOf, typeOf } from '../../../go/index.ts';
import { failTemplate, isTrue } from '../../../go/templates/index.ts';
import { deepEqual } from '../rendering/deep-equal.ts';
import { boolOperand, textOperand } from '../rendering/operands.ts';
import { counted } from '../rendering/rendering.ts';
import type { FunctionRow } from '../rendering/rendering.ts';

export const LOGIC_FUNCTIONS: readonly FunctionRow[] = [
  ['default', counted(1, 2, ([fallback, value]) => (isTrue(value) ? value : fallback))],
  ['empty', counted(1, 1, ([value]) => !isTrue(value))],
  ['coalesce', counted(0, Infinity, (operands) => operands.find((value) => isTrue(value)) ?? null)],
  ['all', counted(0, Infinity, (operands) => operands.every((value) => isTrue(value)))],
  ['any', counted(0, Infinity, (operands) => operands.some((value) => isTrue(value)))],
  ['ternary', counted(3, 3, (operands) => (boolOperand(operands, 2) ? operands[0] : operands[1]))],
  ['fail', counted(1, 1, (operands) => failTemplate(textOperand(operands, 0)))],
  ['kindOf', counted(1, 1, ([value]) => kindOf(value))],
  ['kindIs', counted(2, 2, (operands) => kindOf(operands[1]) === textOperand(operands, 0))],
  ['typeOf', counted(1, 1, ([value]) => typeOf(value))],
  ['typeIs', counted(2, 2, (operands) => typeOf(operands[1]) === textOperand(operands, 0))],
  ['deepEqual', counted(2, 2, ([a, b], { meter }) => deepEqual(a, b, meter))],
];
