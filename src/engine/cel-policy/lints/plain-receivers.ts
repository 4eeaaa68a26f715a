// Finds calls of `orValue` on values that are no optionals. API servers of Kubernetes 1.36 and older return the value, newer
// ones fail.
import { type Expression, expressionsOf } from '../../../cel/index.ts';
import { findingAt, type LintFinding, type Programs } from './lint-finding.ts';

/** Calls of `orValue` on fields that are read without `?`. */
export function plainReceivers(programs: Programs): readonly LintFinding[] {
  return [...programs]
    .filter(([, { text }]) => text.includes('orValue'))
    .flatMap(([field, program]) =>
      [...expressionsOf(program.checked.expression)].flatMap((node) => {
        const receiver = node.kind === 'call' && node.function === 'orValue' ? node.target : undefined;
        return receiver !== undefined && program.checked.types[receiver.id]?.kind === 'dyn' && isPlainField(receiver)
          ? [
              findingAt(
                'plain-or-value',
                field,
                program,
                receiver.start,
                textOf(program.text.slice(receiver.start, receiver.end)),
              ),
            ]
          : [];
      }),
    );
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

function textOf(receiver: string): string {
  const optional = receiver.replace(/\.(?=[^.]*$)/u, '.?');
  return `${receiver} is no optional, and orValue of it is an error since Kubernetes 1.37: write ${optional}.orValue(…)`;
}
