// What is wrong with the entry that a network provider reports of a NetworkPolicy.
import {
  type Condition,
  type FeatureEntry,
  findCondition,
  NETWORK_POLICY_STATUS_MANAGER,
  type ProviderEntry,
} from '../../resources/index.ts';

const FAILURES = ['Failure', 'PartialFailure'];

/** @param generation of the NetworkPolicy @returns none if the entry is as the contract says */
export function reportProblems(entry: ProviderEntry | undefined, generation: number): readonly string[] {
  if (entry === undefined || entry.reporter === NETWORK_POLICY_STATUS_MANAGER) {
    return ['no entry of its own'];
  }
  const accepted = findCondition(entry.conditions, 'Accepted');
  if (accepted === undefined) {
    return ['its entry has no condition Accepted'];
  }
  const failed = FAILURES.filter((type) => findCondition(entry.conditions, type)?.status === 'True');
  const missing = (entry.features ?? []).filter(({ status }) => status === 'False').map(({ type }) => type);
  return [
    ...(entry.reporter === undefined ? ['its entry has no reporter'] : []),
    ...[...(entry.conditions ?? []), ...(entry.features ?? [])].flatMap((one) => generationProblem(one, generation)),
    ...(accepted.status === 'True' && [...failed, ...missing].length > 0
      ? [`Accepted is True beside ${[...failed, ...missing].join(', ')}`]
      : []),
    ...(accepted.status === 'False' && failed.length !== 1
      ? [`Accepted is False, and ${failed.length} of ${FAILURES.join(', ')} are True: expected one`]
      : []),
  ];
}

function generationProblem(
  { type, observedGeneration }: Pick<Condition | FeatureEntry, 'type' | 'observedGeneration'>,
  generation: number,
): readonly string[] {
  return observedGeneration === generation
    ? []
    : [`${type} has observedGeneration ${observedGeneration ?? 'none'}, expected ${generation}`];
}
