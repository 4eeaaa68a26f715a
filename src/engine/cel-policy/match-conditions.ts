import { MATCH_CONDITIONS_COST_BUDGET } from '../../cel/index.ts';
import type { CompiledPolicy } from './compiled-policy.ts';
import { ExpressionRun, OutOfBudget } from './expression-run.ts';
import type { Activation } from './expression-run.ts';

/** Whether a request is meant, or why that cannot be known. */
export type Matching = { readonly matches: boolean } | { readonly error: string };

/**
 * The match conditions of a policy: one that is false excludes the request, whatever the others come to. Otherwise one
 * that failed is an error, unless the policy ignores failures: the request is then not meant.
 */
export function checkMatchConditions(policy: CompiledPolicy, activation: Activation): Matching {
  if (policy.matchConditions.length === 0) {
    return { matches: true };
  }
  const errors = new Set<string>();
  // API servers do not look the namespace up before a request is known to be meant.
  const run = new ExpressionRun(policy, { ...activation, namespaceObject: null }, MATCH_CONDITIONS_COST_BUDGET);
  // All are evaluated, so that the costs of all count.
  let isExcluded = false;
  try {
    for (const condition of policy.matchConditions) {
      const result = run.evaluate(condition);
      if ('error' in result) {
        errors.add(result.error);
      } else if (result.value === false) {
        isExcluded = true;
      }
    }
  } catch (error) {
    if (!(error instanceof OutOfBudget)) {
      throw error;
    }
    return policy.spec.failurePolicy === 'Ignore' ? { matches: false } : { error: error.message };
  }
  if (isExcluded || (errors.size > 0 && policy.spec.failurePolicy === 'Ignore')) {
    return { matches: false };
  }
  if (errors.size > 0) {
    const texts = [...errors];
    return { error: texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]` };
  }
  return { matches: true };
}
