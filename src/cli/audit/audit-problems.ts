// Reports of audits for CI systems: SARIF and annotations.
import { type AuditResult, type Coverage, isIncomplete } from '../../audit/index.ts';
import type { Problem, ProblemRule } from '../problems/problem.ts';
import type { AuditReport } from './audit-report.ts';
import { kindOf, objectOf } from './report-text.ts';

/** The rule of what an audit could not read or judge. */
const COVERAGE_RULE: ProblemRule = {
  id: 'audit-coverage',
  description: 'An audit could not read or judge everything.',
};

/** What was found, and what is not known. */
export function auditProblems(report: AuditReport): readonly Problem[] {
  return [
    ...report.results.filter(({ result }) => result !== 'skip').map((result) => resultProblem(result, report)),
    ...report.coverage.filter(isIncomplete).map(coverageProblem),
  ];
}

/** A rule for each policy. */
export function auditRules({ coverage }: AuditReport): readonly ProblemRule[] {
  const policies = [...new Set(coverage.map(({ policy }) => policy))];
  return [...policies.map((id) => ({ id, description: `The policy ${id}.` })), COVERAGE_RULE];
}

function resultProblem({ policy, mode, result, object, message = '' }: AuditResult, { placeOf }: AuditReport): Problem {
  const place = placeOf(object);
  return {
    rule: policy,
    level: result === 'wouldChange' || mode === 'monitor' ? 'warning' : 'error',
    message: result === 'wouldChange' ? 'the policy would change the object' : message,
    subject: objectOf(object),
    ...(place === undefined ? {} : { place }),
  };
}

function coverageProblem(entry: Coverage): Problem {
  const { policy, state, message = '' } = entry;
  return {
    rule: COVERAGE_RULE.id,
    level: 'error',
    message: `${state}: ${message}`,
    subject: `${policy}: ${kindOf(entry)}`,
  };
}
