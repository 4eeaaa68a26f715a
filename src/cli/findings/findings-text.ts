// Findings for people: tables and Markdown.
import { ageOf } from '../../resources/index.ts';
import { markdownTable, markdownText } from '../markdown-table.ts';
import { counted } from '../output.ts';
import { type Column, oneLine, table } from '../table.ts';
import { type PolicyCoverage, isUncovered } from './audited-policies.ts';
import type { UnreadReports } from './read-reports.ts';
import type { StoredFinding } from './stored-findings.ts';

/** What `portcullis findings` shows. */
export interface FindingsReport {
  readonly findings: readonly StoredFinding[];
  readonly unread: readonly UnreadReports[];
  readonly policies: readonly PolicyCoverage[];
}

export interface TableOptions {
  readonly isWide: boolean;
  readonly withSource: boolean;
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly maxWidth?: number;
}

const POLICY_COLUMNS: readonly Column<PolicyCoverage>[] = [
  { header: 'POLICY', cell: ({ policy }) => oneLine(policy) },
  { header: 'AUDIT', cell: ({ state }) => oneLine(state) },
  { header: 'REASON', cell: ({ reason }) => oneLine(reason) },
  { header: 'MESSAGE', cell: ({ message }) => oneLine(message) },
];

export function findingsTable(report: FindingsReport, options: TableOptions): string {
  const { findings } = report;
  const uncovered = uncoveredPolicies(report);
  return [
    ...(findings.length === 0 ? [] : [table(columnsOf(options), findings, options.maxWidth)]),
    ...(uncovered.length === 0 ? [] : [table(POLICY_COLUMNS, uncovered, options.maxWidth)]),
    summaryText(report),
  ]
    .map((part) => `${part}\n`)
    .join('\n');
}

export function findingsMarkdown(report: FindingsReport, options: TableOptions): string {
  return [
    markdownTable(columnsOf(options), report.findings),
    markdownTable(POLICY_COLUMNS, uncoveredPolicies(report)),
    `${markdownText(summaryText(report))}\n`,
  ]
    .filter((part) => part !== '')
    .join('\n');
}

/** Policies of which more may be wrong than was found; one line where that is so of all. */
function uncoveredPolicies({ policies }: FindingsReport): readonly PolicyCoverage[] {
  const uncovered = policies.filter(isUncovered);
  return isNeverAudited(policies) ? [] : uncovered;
}

function isNeverAudited(policies: readonly PolicyCoverage[]): boolean {
  return policies.length > 0 && policies.every(({ reason }) => reason === 'NotAudited');
}

function columnsOf({ isWide, withSource, now }: TableOptions): readonly Column<StoredFinding>[] {
  return [
    { header: 'POLICY', cell: ({ policy }) => oneLine(policy) },
    ...(withSource ? [{ header: 'SOURCE', cell: ({ source }: StoredFinding) => oneLine(source) }] : []),
    ...(isWide ? [{ header: 'RULE', cell: ({ rule = '' }: StoredFinding) => oneLine(rule) }] : []),
    { header: 'RESULT', cell: resultWords },
    { header: 'SEVERITY', cell: ({ severity = '' }) => severity },
    ...(isWide ? [{ header: 'CATEGORY', cell: ({ category = '' }: StoredFinding) => oneLine(category) }] : []),
    { header: 'OBJECT', cell: objectText, name: 'whole' },
    { header: 'AGE', cell: ({ firstSeen }) => ageOf(firstSeen, now) },
    ...(isWide
      ? [
          { header: 'CHANGED', cell: ({ lastSeen }: StoredFinding) => ageOf(lastSeen, now) },
          { header: 'REVISION', cell: ({ policyRevision = '' }: StoredFinding) => oneLine(policyRevision) },
        ]
      : []),
    { header: 'MESSAGE', cell: ({ message = '' }) => oneLine(message) },
  ];
}

/** `fail`, `warn (monitor)`, `warn (would change)`, `skip (the-exception)`. */
function resultWords({ result, mode, wouldChange, exception }: StoredFinding): string {
  const why = wouldChange === true ? 'would change' : (exception ?? (mode === 'monitor' ? mode : ''));
  return oneLine(why === '' ? result : `${result} (${why})`);
}

function objectText({ object: { kind, namespace, name } }: StoredFinding): string {
  return oneLine(`${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`);
}

function summaryText({ findings, unread, policies }: FindingsReport): string {
  const rest = ['fail', 'warn', 'error', 'skip']
    .map((result) => ({ result, count: findings.filter((one) => one.result === result).length }))
    .filter(({ count }) => count > 0)
    .map(({ result, count }) => `${count} ${result}`);
  const uncovered = policies.filter(isUncovered).length;
  return [
    `${counted(findings.length, 'finding')}${rest.length === 0 ? '' : `: ${rest.join(', ')}`}`,
    ...(findings.length + policies.length === 0 ? ['There is no such policy in the cluster.'] : []),
    ...unread.map(({ message }) => `Not read: ${oneLine(message)}.`),
    ...(isNeverAudited(policies)
      ? [
          'What was scanned is not known: no policy has a status.audit, which the auditor writes. `portcullis audit` scans now, with your rights.',
        ]
      : uncovered === 0
        ? []
        : ['This is not all: objects of the policies above are not scanned yet, or cannot be read.']),
  ].join('\n');
}
