// Finds calls of `orValue` on values that are no optionals. API servers of Kubernetes 1.36 and older return the value, newer
// ones fail.
import { type Expression, expressionsOf, type Program } from '../../cel/index.ts';

/** A call of `orValue` on a value that is no optional. */
export interface PlainReceiver {
  /** Path of the expression. */
  readonly field: string;
  /** The text of the value. */
  readonly receiver: string;
}

/** The texts before `.orValue`, for fields that are read without `?`. */
export function plainReceivers({ checked, text }: Program): readonly string[] {
  return [...expressionsOf(checked.expression)].flatMap((node) => {
    const receiver = node.kind === 'call' && node.function === 'orValue' ? node.target : undefined;
    return receiver !== undefined && checked.types[receiver.id]?.kind === 'dyn' && isPlainField(receiver)
      ? [text.slice(receiver.start, receiver.end)]
      : [];
  });
}

/**
 * Whether an expression reads a field without `?`. Fields of objects are never optionals; variables of the policy may be, and
 * the checker does not know their types.
 */
function isPlainField(node: Expression): boolean {
  let current = node;
  while (current.kind === 'select' || (current.kind === 'call' && current.function === '_[_]')) {
    const operand: Expression | undefined = current.kind === 'select' ? current.operand : current.args[0];
    if (operand === undefined) {
      return false;
    }
    current = operand;
  }
  return current !== node && current.kind === 'identifier' && current.name !== 'variables';
}

/** The mistake in words, with its correction. */
export function plainReceiverText({ receiver }: PlainReceiver): string {
  const optional = receiver.replace(/\.(?=[^.]*$)/u, '.?');
  return `${receiver} is no optional, and orValue of it is an error since Kubernetes 1.37: write ${optional}.orValue(…)`;
}
