import type { Verdict } from '../../../engine/index.ts';
import { parseJson } from '../../../values/index.ts';
import { type Summary, summarize } from './summary.ts';
import { type WarningData, warningData } from './policy-warnings.ts';
import type { CaseResult, SuiteResult } from './suite-runner.ts';

/** The output of `-o json` and `-o yaml`. Times in milliseconds. */
interface DataReport {
  readonly summary: Summary;
  readonly suites: readonly {
    readonly name: string;
    readonly file: string;
    readonly problem?: string;
    /** About the policy; absent without any. */
    readonly warnings?: readonly WarningData[];
    readonly skipped: number;
    readonly durationMs: number;
    readonly cases: readonly {
      readonly name: string;
      readonly line: number;
      readonly status: CaseResult['status'];
      readonly error?: string;
      /** Absent where the policy gave no verdict, or no request was made. */
      readonly response?: Response;
      readonly mismatches: readonly { readonly field: string; readonly expected: string; readonly actual: string }[];
      readonly durationMs: number;
    }[];
  }[];
}

interface Response extends Omit<Verdict, 'patch' | 'causes'> {
  readonly patch?: unknown;
}

function responseOf({ allowed, message, code, warnings, auditAnnotations, patch }: Verdict): Response {
  return {
    allowed,
    ...(message === undefined ? {} : { message }),
    ...(code === undefined ? {} : { code }),
    warnings,
    auditAnnotations,
    ...(patch === undefined ? {} : { patch: parseJson(patch) }),
  };
}

export function dataReport(suites: readonly SuiteResult[]): DataReport {
  return {
    summary: rounded(summarize(suites)),
    suites: suites.map(({ name, file, problem, warnings = [], skipped, durationMs, cases }) =>
      rounded({
        name,
        file,
        ...(problem === undefined ? {} : { problem }),
        ...(warnings.length === 0 ? {} : { warnings: warnings.map(warningData) }),
        skipped,
        durationMs,
        cases: cases.map(({ test, status, error, verdict, mismatches, durationMs: caseMs }) =>
          rounded({
            name: test.name,
            line: test.line,
            status,
            ...(error === undefined ? {} : { error }),
            ...(verdict === undefined ? {} : { response: responseOf(verdict) }),
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
