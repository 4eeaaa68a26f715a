import { warningRules, warningText } from '../../policy/policy-warning.ts';
import type { PolicyCheck, CheckGroup, CheckReport } from './checks.ts';
import { warningProblem } from './policy-warnings.ts';
import type { CaseResult, SuiteResult } from './suite-runner.ts';
import { failureText } from './text-report.ts';

const RULES = {
  failed: { id: 'failed-expectation', description: 'a policy answers otherwise than its test expects' },
  error: { id: 'no-verdict', description: 'a policy gives no verdict' },
  file: { id: 'unusable-file', description: 'a test file cannot be run' },
} as const;

/** Results of suites as checks; a file that could not be run is one with an error. */
export function suiteChecks(suites: readonly SuiteResult[]): CheckReport {
  const warnings = suites.flatMap((suite) => suite.warnings ?? []);
  return {
    groups: suites.map(groupOf),
    warnings: suites.flatMap(({ name, warnings: own = [] }) => own.map((warning) => warningProblem(warning, name))),
    rules: [...Object.values(RULES), ...warningRules(warnings)],
  };
}

function groupOf(suite: SuiteResult): CheckGroup {
  const { name, file, durationMs, problem, warnings = [] } = suite;
  const checks =
    problem === undefined ? suite.cases.map((result) => checkOf(suite, result)) : [unusable(file, problem)];
  return { name, file, checks, warnings: warnings.map(warningText), durationMs };
}

function unusable(file: string, problem: string): PolicyCheck {
  return {
    name: 'the file can be run',
    subject: file,
    status: 'error',
    rule: RULES.file.id,
    message: firstLine(problem),
    details: problem,
    output: [],
    place: { file, line: 1 },
    durationMs: 0,
  };
}

function checkOf({ name, file }: SuiteResult, result: CaseResult): PolicyCheck {
  const { test, status, log, durationMs } = result;
  return {
    name: test.name,
    subject: `${name} › ${test.name}`,
    status,
    rule: status === 'error' ? RULES.error.id : RULES.failed.id,
    message: messageOf(result),
    details: status === 'passed' ? '' : failureText(result),
    output: log.map(({ level, message }) => `${level} ${message}`),
    place: { file, line: test.line },
    durationMs,
  };
}

function messageOf({ error, mismatches }: CaseResult): string {
  return error === undefined
    ? mismatches
        .map(({ field, expected, actual }) => `${field}: expected ${firstLine(expected)}, got ${firstLine(actual)}`)
        .join('; ')
    : firstLine(error);
}

function firstLine(text: string): string {
  const [line = ''] = text.split('\n', 1);
  return line;
}
