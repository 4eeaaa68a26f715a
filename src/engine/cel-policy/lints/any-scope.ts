import { CelError, type InferredType } from '../../../cel/index.ts';
import { variableType, type ExpressionScope, type PolicyEnvironments } from '../policy-environment.ts';
import type { Variables } from './field-chain.ts';

/** All variables that an expression of a policy may have. */
export const ANY_SCOPE: ExpressionScope = {
  hasParams: true,
  hasAuthorizer: true,
  hasVariables: true,
  hasPatchTypes: true,
};

/** The type of a text as an expression of a policy, with its errors; undefined if it does not parse. */
export function issuesOf(
  text: string,
  scope: ExpressionScope,
  variables: Variables,
  environments: PolicyEnvironments,
): InferredType | undefined {
  const types = new Map([...variables].map(([name, { resultType }]) => [name, variableType(resultType)]));
  try {
    return environments.inferType(text, scope, types);
  } catch (error) {
    if (error instanceof CelError) {
      return undefined;
    }
    throw error;
  }
}
