import type { MatchResult } from '../../resources/match-conditions/index.ts';
import { MATCH_CONDITIONS_COST_BUDGET } from '../../cel/index.ts';
import type { CompiledPolicy } from './compiled-policy.ts';
import { ExpressionRun, OutOfBudget } from './expression-run.ts';
import type { Activation } from './expression-run.ts';

/**
 * Evaluates the match conditions of a policy. One that is false excludes the request, even if others fail. Otherwise a
 * failed condition is an error, or excludes the request with failurePolicy Ignore.
 */
export function checkMatchConditions(policy: CompiledPolicy, activation: Activation): MatchResult {
  if (policy.matchConditions.length === 0) {
    return { matches: true };
  }
  const errors = new Set<string>();
  // API servers look up the namespace only after the match conditions.
  const run = new ExpressionRun(policy, { ...activation, namespaceObject: null }, MATCH_CONDITIONS_COST_BUDGET);
  // All are evaluated, because the costs of all count.
  let excludedBy: string | undefined;
  try {
    for (const [index, condition] of policy.matchConditions.entries()) {
      const result = run.evaluate(condition);
      if ('error' in result) {
        errors.add(result.error);
      } else if (result.value === false) {
        excludedBy ??= policy.spec.matchConditions[index]?.name ?? '';
      }
    }
  } catch (error) {
    if (!(error instanceof OutOfBudget)) {
      throw error;
    }
    return policy.spec.failurePolicy === 'Ignore' ? { matches: false } : { error: error.message };
  }
  if (excludedBy !== undefined) {
    return { matches: false, condition: excludedBy };
  }
  if (errors.size > 0 && policy.spec.failurePolicy === 'Ignore') {
    return { matches: false };
  }
  if (errors.size > 0) {
    const texts = [...errors];
    return { error: texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]` };
  }
  return { matches: true };
}
