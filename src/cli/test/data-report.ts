import { type Summary, summarize } from './summary.ts';
import type { CaseResult, SuiteResult } from './suite-runner.ts';

/** The output of `-o json` and `-o yaml`. Times in milliseconds. */
interface DataReport {
  readonly summary: Summary;
  readonly suites: readonly {
    readonly name: string;
    readonly file: string;
    readonly problem?: string;
    readonly skipped: number;
    readonly durationMs: number;
    readonly cases: readonly {
      readonly name: string;
      readonly line: number;
      readonly status: CaseResult['status'];
      readonly error?: string;
      readonly mismatches: readonly { readonly field: string; readonly expected: string; readonly actual: string }[];
      readonly durationMs: number;
    }[];
  }[];
}

export function dataReport(suites: readonly SuiteResult[]): DataReport {
  return {
    summary: rounded(summarize(suites)),
    suites: suites.map(({ name, file, problem, skipped, durationMs, cases }) =>
      rounded({
        name,
        file,
        ...(problem === undefined ? {} : { problem }),
        skipped,
        durationMs,
        cases: cases.map(({ test, status, error, mismatches, durationMs: caseMs }) =>
          rounded({
            name: test.name,
            line: test.line,
            status,
            ...(error === undefined ? {} : { error }),
            mismatches: mismatches.map(({ field, expected, actual }) => ({ field, expected, actual })),
            durationMs: caseMs,
          }),
        ),
      }),
    ),
  };
}

function rounded<Value extends { readonly durationMs: number }>(value: Value): Value {
  return { ...value, durationMs: Math.round(value.durationMs * 1_000) / 1_000 };
}
