import { shortened } from '../../../values/index.ts';
import { oneLine, table } from '../../table.ts';
import { lineDiff } from '../suites/line-diff.ts';
import { objectYaml } from '../suites/object-yaml.ts';
import { clean, diffLines, Paint, plural, timeText } from '../suites/report-text.ts';
import type { FieldLines } from './field-lines.ts';
import {
  countOutcomes,
  exitCodeOf,
  type Outcome,
  type UnusablePolicy,
  type PolicyResult,
  type ResourceReport,
  type ResourceResult,
} from './resource-report.ts';

/** Longest printed message of one result. Characters. */
const MAX_MESSAGE = 2_000;
/** Longest message of a row that is not printed on a terminal. Characters. */
const MAX_CELL = 200;
/** In front of lines that others wrote: no CI system takes one for a command, as GitHub does with `::error::`. */
const GUTTER = '    │ ';

interface ResourceTextOptions {
  readonly color: boolean;
  /** Also policies that do not apply. */
  readonly withSkipped: boolean;
  /** Of the terminal. Default: lines are not shortened. */
  readonly width?: number;
}

interface Row {
  readonly resource: string;
  readonly result: PolicyResult;
}

/** What is wrong with places, then what policies changed, a table of results, and a line with totals. */
export function resourceText(report: ResourceReport, lines: FieldLines, options: ResourceTextOptions): string {
  const paint = new Paint(options.color);
  const parts = [
    ...report.problems.map((problem) => problemText(problem, paint)),
    ...report.resources.flatMap((tested) => failures(tested, lines, paint)),
    ...report.resources.filter(isMutated).map((tested) => changeText(tested, paint)),
    resultTable(report, options, paint),
    totals(report, paint),
  ];
  return parts
    .filter((part) => part !== '')
    .join('\n\n')
    .concat('\n');
}

function problemText({ policy, message }: UnusablePolicy, paint: Paint): string {
  const place = paint.dim(oneLine(`${policy.file}:${policy.line}`));
  return `${paint.red('✘')} ${oneLine(policy.name)} cannot be evaluated  ${place}\n${quoted(message)}`;
}

function failures({ resource, text, results }: ResourceResult, lines: FieldLines, paint: Paint): string[] {
  return results.filter(isFailure).map((result) => {
    const { file, template } = resource;
    const source = template === undefined ? '' : ` (${template})`;
    const place = paint.dim(oneLine(`${file.name}:${lines.lineOf(resource, result)}${source}`));
    const log = result.log.map(({ level, message }) => `log ${level}: ${oneLine(message, MAX_MESSAGE)}`);
    const said = [shortened(result.message ?? '', MAX_MESSAGE), ...log].join('\n');
    return `${paint.red('✘')} ${text} › ${oneLine(result.policy.name)}  ${place}\n${quoted(said)}`;
  });
}

/** A failure is printed with its place and its whole message, before the table. */
function isFailure({ outcome }: PolicyResult): boolean {
  return outcome === 'fail' || outcome === 'error';
}

function isMutated({ before, after }: ResourceResult): boolean {
  return before !== after;
}

function changeText({ text, results, before, after }: ResourceResult, paint: Paint): string {
  const by = results.filter((result) => result.isMutated).map(({ policy }) => oneLine(policy.name));
  const diff = lineDiff(objectYaml(before), objectYaml(after));
  return `${paint.green('±')} ${text}  ${paint.dim(`changed by ${by.join(', ')}`)}\n${diffLines(diff, paint)
    .map((line) => `${GUTTER}${line}`)
    .join('\n')}`;
}

function resultTable({ resources }: ResourceReport, { withSkipped, width }: ResourceTextOptions, paint: Paint): string {
  const rows = resources.flatMap(({ text, results }) =>
    results
      .filter(({ outcome }) => withSkipped || outcome !== 'skip')
      .map((result): Row => ({ resource: text, result })),
  );
  const columns = [
    { header: 'RESOURCE', name: 'distinct' as const, cell: ({ resource }: Row) => resource },
    { header: 'POLICY', name: 'distinct' as const, cell: ({ result }: Row) => oneLine(result.policy.name) },
    { header: 'RESULT', cell: ({ result }: Row) => outcomeText(result.outcome, paint) },
    {
      header: 'MESSAGE',
      cell: ({ result }: Row) => (isFailure(result) ? '' : oneLine(result.message ?? '', MAX_CELL)),
    },
  ];
  return rows.length === 0 ? '' : table(columns, rows, width);
}

function outcomeText(outcome: Outcome, paint: Paint): string {
  switch (outcome) {
    case 'pass':
      return paint.green(outcome);
    case 'fail':
    case 'error':
      return paint.red(outcome);
    case 'warn':
    case 'skip':
      return outcome;
    default:
      return outcome satisfies never;
  }
}

function totals(report: ResourceReport, paint: Paint): string {
  const { pass, fail, warn, error, skip } = countOutcomes(report);
  const { policies, problems, resources, durationMs } = report;
  const parts = [
    `${pass} pass`,
    ...(fail > 0 ? [`${fail} fail`] : []),
    ...(warn > 0 ? [`${warn} warn`] : []),
    ...(error > 0 ? [`${error} error`] : []),
    ...(skip > 0 ? [`${skip} do not apply`] : []),
    ...(problems.length > 0 ? [`${problems.length} cannot be evaluated`] : []),
  ];
  const mark = exitCodeOf(report) === 0 ? paint.green('✔') : paint.red('✘');
  const tested = `${plural(resources.length, 'resource')}, ${policies.length} ${policies.length === 1 ? 'policy' : 'policies'}`;
  return `${mark} ${tested}: ${parts.join(', ')} in ${timeText(durationMs)}`;
}

/** Text that others wrote, without control characters. */
function quoted(text: string): string {
  return clean(text).trimEnd().replaceAll(/^/gm, GUTTER);
}
