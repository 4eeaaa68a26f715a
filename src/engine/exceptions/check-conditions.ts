import { conditionsProblem, MatchConditionEvaluator } from '../../resources/match-conditions/index.ts';
import type { MatchCondition } from '../../resources/index.ts';
import type { Review } from '../review/admission-review.ts';
import { conditionBindings } from '../review/condition-bindings.ts';

/** Compiles the conditions of all exceptions; those that are gone are forgotten. */
const evaluator = new MatchConditionEvaluator(conditionsProblem);

/** Whether a review meets all conditions, within the cost limit of match conditions. One that fails is not met. */
export function meetsAll(conditions: readonly MatchCondition[], review: Review): boolean {
  const result = evaluator.check(conditions, false, conditionBindings(review));
  return 'matches' in result && result.matches;
}
