// What the planner of rollouts needs to know of Policies.
import { isDeepStrictEqual } from 'node:util';
import type { Policy } from '../../../resources/index.ts';
import type { RolloutRules } from '../../../rollout/index.ts';

type Spec = Policy['spec'];

/**
 * A revision that only switches a Policy off inherits the validation of the one before: nothing is applied by it. So does one that
 * switches the same templates on again.
 */
export const POLICY_RULES: RolloutRules<Spec> = {
  evaluates: (spec, { snapshot }) =>
    (spec.disabled || !snapshot.disabled) && isDeepStrictEqual(enabled(spec), enabled(snapshot)),
  admitsFailures: () => false,
};

function enabled(spec: Spec): Spec {
  return { ...spec, disabled: false };
}
