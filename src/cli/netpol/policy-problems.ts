// Results as problems, which the formats of CI systems share.
import {
  FEATURE_TEXTS,
  FEATURES,
  type FeatureVerdict,
  UNREAD_FIELDS,
  unsupportedFeatures,
} from '../../engine/network-policy/index.ts';
import type { Problem, ProblemRule } from '../problems/problem.ts';
import { oneLine } from '../table.ts';
import type { CheckResult } from './check-policies.ts';
import { type PlaceFinder, type PolicyFile, policyPlaces } from './policy-places.ts';

/** A rule for each feature. */
export const POLICY_RULES: readonly ProblemRule[] = [
  ...FEATURES.map((feature) => ({ id: feature, description: FEATURE_TEXTS[feature] })),
  { id: UNREAD_FIELDS, description: 'fields that are not known' },
];

/** A problem for each feature that a provider does not support (an error), or may not support (a warning). */
export async function problemsOf(
  results: readonly CheckResult[],
  files: readonly PolicyFile[],
): Promise<readonly Problem[]> {
  const wanted = new Set(results.filter(hasProblem).map(({ source }) => source));
  const places = await policyPlaces(files, wanted);
  return results.flatMap(({ policy, source, verdicts }) =>
    verdicts.flatMap(({ features }) =>
      unsupportedFeatures(features).map((feature) => problemOf(feature, policy, places.get(source))),
    ),
  );
}

function hasProblem({ verdicts }: CheckResult): boolean {
  return verdicts.some(({ accepted }) => accepted !== 'True');
}

function problemOf({ type, status, message, paths }: FeatureVerdict, subject: string, find?: PlaceFinder): Problem {
  return {
    rule: type,
    level: status === 'False' ? 'error' : 'warning',
    message: oneLine(message),
    subject: oneLine(subject),
    ...(find === undefined ? {} : { place: find(paths[0] ?? '') }),
  };
}
