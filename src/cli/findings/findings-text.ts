// Findings for people: tables and Markdown.
import { isStatusPolicy } from '../../audit/index.ts';
import { ageOf } from '../../resources/index.ts';
import { markdownTable, markdownText } from '../markdown-table.ts';
import { counted } from '../output.ts';
import { type Column, oneLine, table } from '../table.ts';
import { isPolicy, isUncovered, type PolicyCoverage } from './audited-policies.ts';
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

/** Reasons of a policy that no auditor judges by. */
const UNAUDITED: ReadonlySet<string> = new Set(['NotAudited', 'NoAuditor', 'AuditorStopped']);

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

/** Policies by which not all objects are judged; one line where that is so of all. */
function uncoveredPolicies({ policies }: FindingsReport): readonly PolicyCoverage[] {
  return isUnaudited(policies) ? [] : policies.filter((one) => !isCovered(one));
}

function isCovered({ state }: PolicyCoverage): boolean {
  return state === 'Complete';
}

/** Whether no auditor works, which is one line for all policies. */
function isUnaudited(policies: readonly PolicyCoverage[]): boolean {
  return policies.length > 0 && policies.every(({ reason }) => UNAUDITED.has(reason));
}

function columnsOf({ isWide, withSource, now }: TableOptions): readonly Column<StoredFinding>[] {
  return [
    { header: 'POLICY', cell: ({ policy }) => oneLine(policy) },
    ...(withSource ? [{ header: 'SOURCE', cell: ({ source }: StoredFinding) => oneLine(source) }] : []),
    ...(isWide ? [{ header: 'RULE', cell: ({ rule = '' }: StoredFinding) => oneLine(rule) }] : []),
    { header: 'RESULT', cell: resultWords },
    { header: 'SEVERITY', cell: ({ severity = '' }) => oneLine(severity) },
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

function summaryText(report: FindingsReport): string {
  const { findings, unread } = report;
  const rest = ['fail', 'warn', 'error', 'skip']
    .map((result) => ({ result, count: findings.filter((one) => one.result === result).length }))
    .filter(({ count }) => count > 0)
    .map(({ result, count }) => `${count} ${result}`);
  return [
    `${counted(findings.length, 'finding')}${rest.length === 0 ? '' : `: ${rest.join(', ')}`}`,
    ...unread.map(({ message }) => `Not read: ${oneLine(message)}.`),
    ...coverageTexts(report),
  ].join('\n');
}

/** Never empty: what is not found may not have been looked for. */
function coverageTexts({ findings, policies }: FindingsReport): readonly string[] {
  if (isUnaudited(policies)) {
    return [
      `What was scanned is not known: ${oneLine(policies[0]?.message ?? '')}. \`portcullis audit\` scans now, with your rights.`,
    ];
  }
  const known = policies.filter(isPolicy);
  const covered = `${known.filter(isCovered).length} of ${counted(known.length, 'policy', 'policies')}`;
  return [
    policies.length === 0 ? 'There are no admission policies.' : `All objects are judged by ${covered}.`,
    ...(policies.some(isUncovered)
      ? ['This is not all: objects of the policies above are not scanned yet, or cannot be read.']
      : []),
    ...(findings.some(({ policy }) => isStatusPolicy(policy))
      ? ['Governance policies and NetworkPolicies do not count: their own statuses say what is evaluated.']
      : []),
  ];
}
