import { EXIT } from '../../errors.ts';
import type { CaseResult, SuiteResult } from './suite-runner.ts';

/** Counts over suites. */
export interface Summary {
  readonly suites: number;
  readonly cases: number;
  readonly passed: number;
  readonly failed: number;
  /** Cases without a verdict. */
  readonly errors: number;
  readonly skipped: number;
  /** Files that could not be run. */
  readonly problems: number;
  readonly durationMs: number;
}

export function summarize(suites: readonly SuiteResult[]): Summary {
  const cases = suites.flatMap((suite) => suite.cases);
  const count = (status: CaseResult['status']): number => cases.filter((entry) => entry.status === status).length;
  return {
    suites: suites.length,
    cases: cases.length,
    passed: count('passed'),
    failed: count('failed'),
    errors: count('error'),
    skipped: suites.reduce((sum, { skipped }) => sum + skipped, 0),
    problems: suites.filter(({ problem }) => problem !== undefined).length,
    durationMs: suites.reduce((sum, { durationMs }) => sum + durationMs, 0),
  };
}

/** An unusable test file counts more than a failed case. */
export function exitCodeOf({ problems, failed, errors }: Summary): number {
  if (problems > 0) {
    return EXIT.usage;
  }
  return failed + errors > 0 ? EXIT.failed : EXIT.ok;
}
