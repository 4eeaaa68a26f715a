import type { FieldProblem } from '../values/field-problem.ts';
import type { PolicySpec } from './policy-spec.ts';

/**
 * Length of all expressions of a policy together, in characters: some 0.2 s to compile, and 10 MB in each thread. The longest
 * published policy has a tenth.
 */
const MAX_POLICY_EXPRESSIONS = 131_072;

/** What is wrong with the length of a policy's expressions, before they are parsed. */
export function expressionsProblem(spec: PolicySpec): FieldProblem | undefined {
  const { matchConditions, variables, validations, auditAnnotations, mutations } = spec;
  const fields: readonly (readonly [field: string, length: number])[] = [
    ['matchConditions', lengthOf(matchConditions.map(({ expression }) => expression))],
    ['variables', lengthOf(variables.map(({ expression }) => expression))],
    ['validations', lengthOf(validations.flatMap((one) => [one.expression, one.messageExpression]))],
    ['auditAnnotations', lengthOf(auditAnnotations.map(({ valueExpression }) => valueExpression))],
    ['mutations', lengthOf(mutations.map(({ expression }) => expression))],
  ];
  let before = 0;
  const tooLong = fields.find(([, length]) => (before += length) > MAX_POLICY_EXPRESSIONS);
  if (tooLong === undefined) {
    return undefined;
  }
  const all = fields.reduce((sum, [, length]) => sum + length, 0);
  return {
    field: tooLong[0],
    message: `Too long: expected at most ${MAX_POLICY_EXPRESSIONS} characters in all expressions of a policy, got ${all}. Split the policy`,
  };
}

function lengthOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0);
}
