import { oneLine, table } from '../../table.ts';
import type { Mismatch } from './compare.ts';
import { clean, diffLines, indent, Paint, plural, timeText } from './report-text.ts';
import { summarize } from './summary.ts';
import type { CaseResult, SuiteResult } from './suite-runner.ts';
import { shortened } from '../../../values/index.ts';

/** Longest printed text of one expectation; differences between objects may be longer. */
const MAX_TEXT = 2_000;

interface TextReportOptions {
  readonly color: boolean;
  /** Of the terminal. Default: lines are not shortened. */
  readonly width?: number;
}

/** Failures, then a table, then a line with totals. */
export function textReport(suites: readonly SuiteResult[], { color, width }: TextReportOptions): string {
  const paint = new Paint(color);
  const failures = suites.flatMap((suite) => [
    ...(suite.problem === undefined
      ? []
      : [`${paint.red('✘')} ${oneLine(suite.file)} cannot be run\n${indent(clean(suite.problem), 4)}`]),
    ...suite.cases.filter(({ status }) => status !== 'passed').map((result) => failure(suite, result, paint)),
  ]);
  return [...failures, suiteTable(suites, paint, width), totals(suites, paint)].join('\n\n').concat('\n');
}

/** The expected and actual values of a case, without colours. */
export function failureText(result: CaseResult): string {
  return details(result, new Paint(false));
}

function failure(suite: SuiteResult, result: CaseResult, paint: Paint): string {
  const { name, line, column } = result.test;
  const place = paint.dim(`${oneLine(suite.file)}:${line}:${column}`);
  return `${paint.red('✘')} ${oneLine(suite.name)} › ${oneLine(name)}  ${place}\n${indent(details(result, paint), 4)}`;
}

function details({ error, mismatches, log }: CaseResult, paint: Paint): string {
  const parts = [
    ...(error === undefined ? [] : [`${paint.red('error')}  ${clean(error)}`]),
    ...mismatches.map((mismatch) => mismatchText(mismatch, paint)),
    ...log.map(({ level, message }) => paint.dim(`log ${level}: ${oneLine(message, 500)}`)),
  ];
  return parts.join('\n');
}

function mismatchText({ field, expected, actual, diff }: Mismatch, paint: Paint): string {
  if (diff !== undefined) {
    const legend = `${paint.red('- expected')} ${paint.green('+ got')}`;
    return `${field}  ${legend}\n${indent(diffLines(diff, paint).join('\n'), 2)}`;
  }
  return `${field}\n  expected  ${block(expected)}\n  got       ${block(actual)}`;
}

function suiteTable(suites: readonly SuiteResult[], paint: Paint, width?: number): string {
  return table(
    [
      { header: 'SUITE', name: 'distinct', cell: ({ name }: SuiteResult) => oneLine(name) },
      { header: 'CASES', cell: ({ cases, problem }) => (problem === undefined ? String(cases.length) : '-') },
      { header: 'PASSED', cell: (suite) => counted(suite, summarize([suite]).passed, paint.green) },
      {
        header: 'FAILED',
        cell: (suite) => counted(suite, summarize([suite]).failed + summarize([suite]).errors, paint.red),
      },
      { header: 'TIME', cell: ({ durationMs, problem }) => (problem === undefined ? timeText(durationMs) : '-') },
    ],
    suites,
    width,
  );
}

function counted({ problem }: SuiteResult, count: number, color: (text: string) => string): string {
  return problem !== undefined ? '-' : count === 0 ? '0' : color(String(count));
}

function totals(suites: readonly SuiteResult[], paint: Paint): string {
  const { cases, passed, failed, errors, skipped, problems, durationMs } = summarize(suites);
  const parts = [
    `${passed} of ${plural(cases, 'case')} passed`,
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(errors > 0 ? [`${errors} without a verdict`] : []),
    ...(skipped > 0 ? [`${skipped} left out`] : []),
    ...(problems > 0 ? [`${plural(problems, 'file')} could not be run`] : []),
  ];
  const isGood = failed + errors + problems === 0;
  const mark = isGood ? paint.green('✔') : paint.red('✘');
  return `${mark} ${parts.join(', ')} in ${timeText(durationMs)}`;
}

function block(text: string): string {
  return clean(shortened(text, MAX_TEXT))
    .trimEnd()
    .replaceAll('\n', `\n${' '.repeat(12)}`);
}
