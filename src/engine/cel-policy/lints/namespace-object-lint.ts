// Finds match conditions with `namespaceObject`, which is null there: API servers look the namespace up after them.
import { expressionsOf, findCertain, readsField } from '../../../cel/index.ts';
import type { FailurePolicyType } from '../policy-spec.ts';
import { findingAt, type LintFinding, type Programs } from './lint-finding.ts';

const NAME = 'namespaceObject';

/** Match conditions that use `namespaceObject`. Where one always reads a field of it, the policy judges no request. */
export function namespaceObjectLint(
  programs: Programs,
  failurePolicy: FailurePolicyType,
  selectorField: string,
): readonly LintFinding[] {
  return [...programs].flatMap(([field, program]) => {
    const { expression } = program.checked;
    const use = program.text.includes(NAME)
      ? [...expressionsOf(expression)].find((node) => node.kind === 'identifier' && node.name === NAME)
      : undefined;
    if (use === undefined) {
      return [];
    }
    const read = findCertain(expression, (node) => readsField(node, NAME));
    const isFatal = read !== undefined && failurePolicy === 'Fail';
    const effect =
      read === undefined
        ? ''
        : isFatal
          ? ': the condition fails, and every request that other conditions do not exclude would be rejected'
          : ': the condition fails, and the policy would apply to no request';
    const message = `${NAME} is always null in match conditions, as in an API server${effect}. Use it in a validation or a variable, or select namespaces by ${selectorField}`;
    const finding = findingAt('namespace-object', field, program, (read ?? use).start, message);
    return [isFatal ? ({ ...finding, isError: true } as const) : finding];
  });
}
