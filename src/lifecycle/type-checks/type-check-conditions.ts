// Conditions about the kinds that a policy matches.
import { type Condition, findCondition, removeCondition, setCondition } from '../../resources/index.ts';
import { shortened } from '../../values/index.ts';
import type { TypeCheckReport } from './type-check-report.ts';

/** Every rule of the policy matches a resource that the cluster serves. */
export const RESOURCES_SERVED = 'ResourcesServed';
/** The expressions of the policy fit the schemas of the kinds that it matches. Only for policies with such expressions. */
export const TYPE_CHECKED = 'TypeChecked';

/** Characters of a message: a list of warnings stays readable in `kubectl describe`. */
const MAX_MESSAGE = 1_024;

/** The conditions with those of a report. Without a report, those before stay. */
export function typeCheckConditions(
  before: readonly Condition[] | undefined,
  report: TypeCheckReport | undefined,
  observedGeneration: number,
  now: number,
): readonly Condition[] | undefined {
  if (report === undefined) {
    return before;
  }
  const set = (all: readonly Condition[] | undefined, condition: StatedCondition): readonly Condition[] =>
    setCondition(all, { ...condition, observedGeneration }, now);
  const served = report.skipped === undefined ? set(before, servedCondition(report)) : before;
  const typed = typedCondition(report);
  return typed === undefined ? removeCondition(served, TYPE_CHECKED) : set(served, typed);
}

type StatedCondition = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

function servedCondition({ unserved }: TypeCheckReport): StatedCondition {
  return unserved.length === 0
    ? { type: RESOURCES_SERVED, status: 'True', reason: 'Served', message: 'the cluster serves what the rules match' }
    : { type: RESOURCES_SERVED, status: 'False', reason: 'NotServed', message: listed(unserved) };
}

function typedCondition({ warnings, expressions, kinds, skipped }: TypeCheckReport): StatedCondition | undefined {
  if (skipped !== undefined) {
    return { type: TYPE_CHECKED, status: 'Unknown', reason: 'NotChecked', message: shortened(skipped, MAX_MESSAGE) };
  }
  if (warnings.length > 0) {
    return { type: TYPE_CHECKED, status: 'False', reason: 'TypeWarnings', message: listed(warnings) };
  }
  const message = `no warnings for ${kinds.join(', ')}`;
  return expressions === 0
    ? undefined
    : { type: TYPE_CHECKED, status: 'True', reason: 'NoWarnings', message: shortened(message, MAX_MESSAGE) };
}

function listed(problems: readonly { readonly field: string; readonly message: string }[]): string {
  return shortened(problems.map(({ field, message }) => `${field}: ${message}`).join('; '), MAX_MESSAGE);
}

/** Whether the conditions are about this generation of a policy. */
export function isTypeChecked(conditions: readonly Condition[] | undefined, generation: number): boolean {
  return [RESOURCES_SERVED, TYPE_CHECKED].some(
    (type) => findCondition(conditions, type)?.observedGeneration === generation,
  );
}
