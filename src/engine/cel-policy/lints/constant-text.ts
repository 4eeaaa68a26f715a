import type { Expression } from '../../../cel/index.ts';
import type { Variables } from './field-chain.ts';

/** Variables that use others, and operands, at most so many one inside the other. */
const MAX_DEPTH = 20;

/** What is known of a text without a request. */
export interface ConstantText {
  /** Its beginning. */
  readonly text: string;
  /** Whether nothing follows. */
  readonly isWhole: boolean;
}

const UNKNOWN: ConstantText = { text: '', isWhole: false };

/** The constant beginning of a text: of literals, `+`, `jsonpatch.escapeKey` and variables of the policy. */
export function constantText(node: Expression | undefined, variables: Variables, depth = 0): ConstantText {
  if (node === undefined || depth > MAX_DEPTH) {
    return UNKNOWN;
  }
  if (node.kind === 'literal') {
    return typeof node.value === 'string' ? { text: node.value, isWhole: true } : UNKNOWN;
  }
  if (node.kind === 'select' && node.operand.kind === 'identifier' && node.operand.name === 'variables') {
    return constantText(variables.get(node.field)?.checked.expression, variables, depth + 1);
  }
  if (node.kind !== 'call') {
    return UNKNOWN;
  }
  if (node.function === '_+_') {
    const left = constantText(node.args[0], variables, depth + 1);
    const right = left.isWhole ? constantText(node.args[1], variables, depth + 1) : UNKNOWN;
    return left.isWhole ? { text: left.text + right.text, isWhole: right.isWhole } : left;
  }
  if (node.function === 'jsonpatch.escapeKey') {
    const key = constantText(node.args[0], variables, depth + 1);
    return key.isWhole ? { text: key.text.replaceAll('~', '~0').replaceAll('/', '~1'), isWhole: true } : UNKNOWN;
  }
  return UNKNOWN;
}
