// Reports of audits for people: tables and Markdown.
import { type AuditResult, type Coverage, isIncomplete } from '../../audit/index.ts';
import { groupResourceOf } from '../../resources/index.ts';
import { markdownTable, markdownText } from '../markdown-table.ts';
import { counted, countText, dataText } from '../output.ts';
import { type Column, oneLine, table } from '../table.ts';
import { type AuditReport, summaryOf } from './audit-report.ts';

const RESULT_COLUMNS: readonly Column<AuditResult>[] = [
  { header: 'POLICY', cell: ({ policy }) => oneLine(policy) },
  { header: 'RESULT', cell: resultText },
  { header: 'OBJECT', cell: ({ object }) => objectOf(object), name: 'whole' },
  { header: 'MESSAGE', cell: (result) => oneLine(messageOf(result)) },
];

/** Entries that say the same of several kinds. */
type CoverageRow = Coverage & { readonly kinds: readonly string[] };

/** Kinds of a row that are named. */
const MAX_KINDS = 2;

/** Columns for rows of {@link notScanned}. */
export const COVERAGE_COLUMNS: readonly Column<CoverageRow>[] = [
  { header: 'POLICY', cell: ({ policy }) => oneLine(policy) },
  { header: 'KIND', cell: ({ kinds }) => kindsText(kinds) },
  { header: 'STATE', cell: ({ state }) => state },
  { header: 'REASON', cell: ({ reason = '' }) => reason },
  { header: 'MESSAGE', cell: ({ message = '' }) => oneLine(message) },
];

/** `Pod shop/web` */
export function objectOf({ kind, namespace, name }: AuditResult['object']): string {
  return oneLine(`${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`);
}

/** `pods in shop`; `*` for all kinds. */
export function kindOf({ kind, namespace }: Coverage): string {
  return `${kind === undefined ? '*' : groupResourceOf(kind)}${namespace === undefined ? '' : ` in ${namespace}`}`;
}

/** `fail`, `would change`; of a policy that rejects nothing with its mode. */
export function resultText({ result, mode }: AuditResult): string {
  return `${result === 'wouldChange' ? 'would change' : result}${mode === 'monitor' ? ' (monitor)' : ''}`;
}

/** What a result says beside its kind. */
export function messageOf({ message = '', exception }: AuditResult): string {
  return exception === undefined ? message : `excepted by ${exception}`;
}

export function auditTable(report: AuditReport): string {
  const { results } = report;
  const unknown = notScanned(report);
  return [
    ...(results.length === 0 ? [] : [table(RESULT_COLUMNS, results)]),
    ...(unknown.length === 0 ? [] : [table(COVERAGE_COLUMNS, unknown)]),
    ...missingRights(report).map((rules) => `Rules of a ClusterRole that are missing:\n${rules.trimEnd()}`),
    summaryText(report),
  ]
    .map((part) => `${part}\n`)
    .join('\n');
}

export function auditMarkdown(report: AuditReport): string {
  return [
    markdownTable(RESULT_COLUMNS, report.results),
    markdownTable(COVERAGE_COLUMNS, notScanned(report)),
    ...missingRights(report).map((rules) => `Rules of a ClusterRole that are missing:\n\n\`\`\`yaml\n${rules}\`\`\`\n`),
    `${markdownText(summaryText(report))}\n`,
  ]
    .filter((part) => part !== '')
    .join('\n');
}

/** What keeps a report from being clean comes first. */
export function notScanned({ coverage }: Pick<AuditReport, 'coverage'>): readonly CoverageRow[] {
  const others = coverage.filter(({ state }) => state !== 'Scanned');
  const sorted = [...others.filter(isIncomplete), ...others.filter((entry) => !isIncomplete(entry))];
  const rows = Map.groupBy(sorted, ({ policy, state, message }) => [policy, state, message].join('\n'));
  return [...rows.values()].flatMap((entries) => {
    const [first] = entries;
    return first === undefined ? [] : [{ ...first, kinds: entries.map(kindOf) }];
  });
}

function kindsText(kinds: readonly string[]): string {
  const more = kinds.length - MAX_KINDS;
  return more <= 1 ? kinds.join(', ') : `${kinds.slice(0, MAX_KINDS).join(', ')} and ${more} more`;
}

/** One rule for each group, as YAML; none where no right is missing. */
export function missingRights({ coverage }: Pick<AuditReport, 'coverage'>): readonly string[] {
  const missing = coverage.flatMap(({ missingRule }) => missingRule ?? []);
  const byGroup = Map.groupBy(missing, ({ apiGroups: [group = ''] }) => group);
  const rules = [...byGroup].map(([group, ofGroup]) => ({
    apiGroups: [group],
    resources: [...new Set(ofGroup.flatMap(({ resources }) => resources))].toSorted(),
    verbs: ['list'],
  }));
  return rules.length === 0 ? [] : [dataText(rules, 'yaml')];
}

function summaryText(report: AuditReport): string {
  const { policies, kinds, objects, findings, monitored, wouldChange, excepted, unjudged, incomplete, notAuditable } =
    summaryOf(report);
  const looked = [counted(policies, 'policy', 'policies'), counted(kinds, 'kind'), counted(objects, 'object')].join(
    ', ',
  );
  const found = [
    `${counted(findings, 'finding')}${monitored === 0 ? '' : ` (${countText(monitored)} of policies in monitor mode)`}`,
    ...(wouldChange === 0 ? [] : [`${countText(wouldChange)} would change`]),
    ...(excepted === 0 ? [] : [`${countText(excepted)} excepted`]),
    ...(unjudged === 0 ? [] : [`${counted(unjudged, 'verdict')} missing`]),
    ...(notAuditable === 0 ? [] : [`${countText(notAuditable)} not auditable`]),
  ].join(', ');
  const unknown =
    incomplete === 0 ? '' : '\nThis is not all: what is Forbidden, Failed, Partial or NotRead may hide more.';
  return `${looked}: ${found}${unknown}`;
}
