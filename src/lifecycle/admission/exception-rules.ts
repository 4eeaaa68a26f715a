import { exceptionProblems, type PolicyException } from '../../resources/index.ts';
import type { Findings } from './findings.ts';
import type { MatchConditionCompiler } from './match-conditions.ts';

/** Checks an exception beyond its schema. @param now the instant at which it is written, in milliseconds since 1970 */
export function checkException(
  exception: PolicyException,
  now: number,
  conditions: MatchConditionCompiler,
  findings: Findings,
): void {
  findings.rejectAll('exception', exceptionProblems(exception, now));
  conditions.check(exception.spec.matchConditions ?? [], true, findings);
}
