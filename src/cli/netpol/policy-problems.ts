// Results as problems, which the formats of CI systems share.
import {
  FEATURE_TEXTS,
  FEATURES,
  MISTAKES,
  UNREAD_FIELDS,
  unsupportedFeatures,
} from '../../engine/network-policy/index.ts';
import type { Problem, ProblemRule } from '../problems/problem.ts';
import { oneLine } from '../table.ts';
import type { CheckResult } from './check-policies.ts';

const REFUSED = 'Refused';

/** A rule for each feature, for each mistake, and for what API servers refuse. */
export const POLICY_RULES: readonly ProblemRule[] = [
  ...FEATURES.map((feature) => ({ id: feature, description: FEATURE_TEXTS[feature] })),
  { id: UNREAD_FIELDS, description: 'fields that are not known' },
  ...Object.entries(MISTAKES).map(([id, description]) => ({ id, description })),
  { id: REFUSED, description: 'what API servers refuse' },
];

/**
 * An error for each refusal, and for each feature that a provider does not support; a warning for what it may not support, and for
 * what else to know.
 */
export function problemsOf(results: readonly CheckResult[]): readonly Problem[] {
  return results.flatMap(({ policy, refusals, mistakes, verdicts, placeOf }) => {
    const problem = (rule: string, level: Problem['level'], message: string, path = ''): Problem => ({
      rule,
      level,
      message: oneLine(message),
      subject: oneLine(policy),
      ...(placeOf === undefined ? {} : { place: placeOf(path) }),
    });
    return [
      ...refusals.map(({ message, path }) => problem(REFUSED, 'error', message, path)),
      ...mistakes.map(({ type, message, paths }) => problem(type, 'warning', `this policy ${message}`, paths[0])),
      ...verdicts.flatMap(({ features, warnings }) => [
        ...unsupportedFeatures(features).map(({ type, status, message, paths }) =>
          problem(type, status === 'False' ? 'error' : 'warning', message, paths[0]),
        ),
        ...warnings.map(({ type, message, paths }) => problem(type, 'warning', message, paths[0])),
      ]),
    ];
  });
}
