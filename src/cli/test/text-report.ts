import { styleText } from 'node:util';
import { oneLine, table } from '../table.ts';
import type { Mismatch } from './compare.ts';
import type { DiffLine } from './line-diff.ts';
import { summarize } from './summary.ts';
import type { CaseResult, SuiteResult } from './suite-runner.ts';
import { shortened } from '../../values/index.ts';

/** Longest printed text of one expectation; differences between objects may be longer. */
const MAX_TEXT = 2_000;
const MAX_DIFF_LINES = 200;

interface TextReportOptions {
  readonly color: boolean;
}

/** Failures, then a table, then a line with totals. */
export function textReport(suites: readonly SuiteResult[], { color }: TextReportOptions): string {
  const paint = new Paint(color);
  const failures = suites.flatMap((suite) => [
    ...(suite.problem === undefined
      ? []
      : [`${paint.red('✘')} ${oneLine(suite.file)} cannot be run\n${indent(clean(suite.problem), 4)}`]),
    ...suite.cases.filter(({ status }) => status !== 'passed').map((result) => failure(suite, result, paint)),
  ]);
  return [...failures, suiteTable(suites, paint), totals(suites, paint)].join('\n\n').concat('\n');
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
    const shown = diff.slice(0, MAX_DIFF_LINES).map((line) => diffText(line, paint));
    const more = diff.length > MAX_DIFF_LINES ? [`… ${diff.length - MAX_DIFF_LINES} more lines`] : [];
    const legend = `${paint.red('- expected')} ${paint.green('+ got')}`;
    return `${field}  ${legend}\n${indent([...shown, ...more].join('\n'), 2)}`;
  }
  return `${field}\n  expected  ${block(expected)}\n  got       ${block(actual)}`;
}

function diffText({ kind, text }: DiffLine, paint: Paint): string {
  const line = clean(text);
  switch (kind) {
    case 'expected':
      return paint.red(`- ${line}`);
    case 'actual':
      return paint.green(`+ ${line}`);
    case 'gap':
      return paint.dim('  …');
    case 'same':
      return `  ${line}`;
    default:
      return kind satisfies never;
  }
}

function suiteTable(suites: readonly SuiteResult[], paint: Paint): string {
  return table(
    [
      { header: 'SUITE', cell: ({ name }: SuiteResult) => oneLine(name, 60) },
      { header: 'CASES', cell: ({ cases, problem }) => (problem === undefined ? String(cases.length) : '-') },
      { header: 'PASSED', cell: (suite) => counted(suite, summarize([suite]).passed, paint.green) },
      {
        header: 'FAILED',
        cell: (suite) => counted(suite, summarize([suite]).failed + summarize([suite]).errors, paint.red),
      },
      { header: 'TIME', cell: ({ durationMs, problem }) => (problem === undefined ? timeText(durationMs) : '-') },
    ],
    suites,
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

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function timeText(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

function block(text: string): string {
  return clean(shortened(text, MAX_TEXT))
    .trimEnd()
    .replaceAll('\n', `\n${' '.repeat(12)}`);
}

/** Untrusted text without control characters other than line breaks. */
function clean(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n]/gu, ' ');
}

function indent(text: string, columns: number): string {
  return text.replaceAll(/^(?=.)/gm, ' '.repeat(columns));
}

/** Colours, or none. */
class Paint {
  readonly #isOn: boolean;

  constructor(isOn: boolean) {
    this.#isOn = isOn;
  }

  readonly red = (text: string): string => this.#style('red', text);
  readonly green = (text: string): string => this.#style('green', text);
  readonly dim = (text: string): string => this.#style('gray', text);

  #style(color: 'red' | 'green' | 'gray', text: string): string {
    return this.#isOn ? styleText(color, text, { validateStream: false }) : text;
  }
}
