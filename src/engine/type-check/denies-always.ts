import { EngineError } from '../values/errors.ts';
import { isNeverTrueWithout } from '../definition/group-expression.ts';
import type { TypeWarning } from './check-policy-types.ts';

/** The members of a group, and its expression. */
interface Group {
  readonly policies: object;
  readonly expression: string;
}

/** Whether a group denies every request because members do, whatever the other members say. */
export function deniesAlways({ policies, expression }: Group, warnings: readonly TypeWarning[]): boolean {
  const names = Object.keys(policies);
  const broken = names.filter((name) => warnings.some((one) => one.isCertain && isOfValidations(one.field, name)));
  try {
    return broken.length > 0 && isNeverTrueWithout(expression, new Set(names), new Set(broken));
  } catch (error) {
    if (error instanceof EngineError) {
      // It does not parse, which is reported where the policy is loaded.
      return false;
    }
    throw error;
  }
}

/** Not of conditions: a member whose conditions are false allows. */
function isOfValidations(field: string, member: string): boolean {
  const settings = `spec.policies[${member}].settings.`;
  return ['validations[', 'variables['].some((list) => field.startsWith(`${settings}${list}`));
}
