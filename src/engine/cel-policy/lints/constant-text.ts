import type { Expression } from '../../../cel/index.ts';
import type { Variables } from './field-chain.ts';

/** Parts of one text that are looked at. Variables may use others many times, so that their number is not limited by itself. */
const MAX_PARTS = 1_000;

/** What is known of a text without a request. */
export interface ConstantText {
  /** Its beginning. */
  readonly text: string;
  /** Whether nothing follows. */
  readonly isWhole: boolean;
}

const UNKNOWN: ConstantText = { text: '', isWhole: false };

/** The texts that an expression is, or lists, as literals. */
export function literalTexts(node: Expression): readonly string[] {
  if (node.kind === 'literal') {
    return typeof node.value === 'string' ? [node.value] : [];
  }
  return node.kind === 'list' ? node.elements.flatMap(literalTexts) : [];
}

/** The constant beginning of a text: of literals, `+`, `jsonpatch.escapeKey` and variables of the policy. */
export function constantText(node: Expression | undefined, variables: Variables): ConstantText {
  return new ConstantTexts(variables).of(node);
}

class ConstantTexts {
  readonly #variables: Variables;
  #parts = 0;

  constructor(variables: Variables) {
    this.#variables = variables;
  }

  of(node: Expression | undefined): ConstantText {
    this.#parts += 1;
    if (node === undefined || this.#parts > MAX_PARTS) {
      return UNKNOWN;
    }
    if (node.kind === 'literal') {
      return typeof node.value === 'string' ? { text: node.value, isWhole: true } : UNKNOWN;
    }
    if (node.kind === 'select' && node.operand.kind === 'identifier' && node.operand.name === 'variables') {
      return this.of(this.#variables.get(node.field)?.checked.expression);
    }
    if (node.kind !== 'call') {
      return UNKNOWN;
    }
    if (node.function === '_+_') {
      return this.#joined(node.args);
    }
    return node.function === 'jsonpatch.escapeKey' ? this.#escaped(node.args[0]) : UNKNOWN;
  }

  #joined([left, right]: readonly Expression[]): ConstantText {
    const first = this.of(left);
    if (!first.isWhole) {
      return first;
    }
    const second = this.of(right);
    return { text: first.text + second.text, isWhole: second.isWhole };
  }

  #escaped(node: Expression | undefined): ConstantText {
    const { text, isWhole } = this.of(node);
    return isWhole ? { text: text.replaceAll('~', '~0').replaceAll('/', '~1'), isWhole } : UNKNOWN;
  }
}
