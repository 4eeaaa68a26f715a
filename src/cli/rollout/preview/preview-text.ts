// Previews for people and for programs.
import {
  type VerdictChange,
  type ChangeGroup,
  isUnfinished,
  type Subject,
  SUBJECTS,
} from '../../../audit/preview/index.ts';
import { NAMESPACE_NAME_LABEL } from '../../../resources/index.ts';
import { COVERAGE_COLUMNS, missingRights, notScanned } from '../../audit/report-text.ts';
import { markdownTable, markdownText } from '../../markdown-table.ts';
import { countText, dataText } from '../../output.ts';
import { type Column, oneLine, table } from '../../table.ts';
import { guardedGroups, type PreviewReport } from './preview-report.ts';

export const PREVIEW_OUTPUTS = ['table', 'json', 'yaml', 'markdown'] as const;

/** Groups that are listed for people. Data has all of them. */
const MAX_GROUPS = 50;

const CHANGES: Readonly<Record<VerdictChange, string>> = {
  newlyRejected: 'newly rejected',
  newlyAdmitted: 'newly admitted',
  newlyMutated: 'newly mutated',
  mutationChanged: 'mutation changed',
  noLongerMutated: 'no longer mutated',
  messageChanged: 'message changed',
  newlyReported: 'newly reported (monitor)',
  notEvaluable: 'not evaluable',
  stillRejected: 'still rejected',
  unchanged: 'unchanged',
};

const SUBJECT_TEXTS: Readonly<Record<Subject, readonly [one: string, many: string]>> = {
  objects: ['object', 'objects'],
  nextPods: ['pod template', 'pod templates'],
  rollbacks: ['stored revision', 'stored revisions'],
  finalizers: ['object with finalizers', 'objects with finalizers'],
  requests: ['recorded request', 'recorded requests'],
};

/** What is newly rejected, where that is not the object itself. */
const REJECTIONS: Readonly<Record<Exclude<Subject, 'objects'>, string>> = {
  nextPods: 'next pods rejected',
  rollbacks: 'rollback rejected',
  finalizers: 'deletion blocked',
  requests: 'request newly rejected',
};

const GROUP_COLUMNS: readonly Column<ChangeGroup>[] = [
  { header: 'CHANGE', cell: changeText },
  { header: 'COUNT', cell: ({ count }) => countText(count) },
  { header: 'OWNER', cell: ({ owner }) => (owner === undefined ? '' : oneLine(`${owner.kind} ${owner.name}`)) },
  { header: 'EXAMPLE', cell: exampleText, name: 'whole' },
  { header: 'MESSAGE', cell: messageText },
];

const GUARD_COLUMNS: readonly Column<ChangeGroup>[] = [
  { header: 'PART OF', cell: ({ guard = '' }) => guard },
  ...GROUP_COLUMNS,
];

const VERSION_COLUMNS = COVERAGE_COLUMNS.map((column, index) =>
  index === 0 ? { ...column, header: 'VERSION' } : column,
);

export function previewText(report: PreviewReport, output: (typeof PREVIEW_OUTPUTS)[number]): string {
  switch (output) {
    case 'table':
      return previewTable(report);
    case 'markdown':
      return previewMarkdown(report);
    case 'json':
    case 'yaml':
      return dataText(previewData(report), output, { pretty: true });
    default:
      return output satisfies never;
  }
}

/** What a table and Markdown have both, in order: what is not known, what must not be rejected, and all else. */
interface Section {
  readonly text?: string;
  readonly code?: string;
  readonly columns?: readonly Column<never>[];
  readonly rows?: readonly unknown[];
}

function sectionsOf(report: PreviewReport): readonly Section[] {
  const guarded = guardedGroups(report);
  const others = report.groups.filter(({ guard }) => guard === undefined);
  const unknown = notScanned(report);
  return [
    { text: `${oneLine(report.policy)}: ${oneLine(report.old)} → ${oneLine(report.new)}` },
    ...notes(report).map((text) => ({ text })),
    ...(guarded.length === 0
      ? []
      : [
          { text: 'It would reject what the cluster needs to run, and to be repaired:' },
          rowsOf(GUARD_COLUMNS, guarded),
          ...exemption(guarded),
        ]),
    ...(others.length === 0 ? [] : [rowsOf(GROUP_COLUMNS, others.slice(0, MAX_GROUPS))]),
    ...(others.length <= MAX_GROUPS
      ? []
      : [{ text: `and ${countText(others.length - MAX_GROUPS)} more groups: -o json has all of them` }]),
    ...(unknown.length === 0 ? [] : [rowsOf(VERSION_COLUMNS, unknown)]),
    ...missingRights(report).flatMap((code) => [{ text: 'Rules of a ClusterRole that are missing:', code }]),
    { text: summaryLines(report).join('\n') },
  ];
}

function rowsOf<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): Section {
  return { columns, rows };
}

function previewTable(report: PreviewReport): string {
  return sectionsOf(report)
    .map(({ text, code, columns, rows }) =>
      [
        ...(text === undefined ? [] : [text]),
        ...(code === undefined ? [] : [code.trimEnd()]),
        ...(columns === undefined ? [] : [table(columns as readonly Column<unknown>[], rows ?? [])]),
      ].join('\n'),
    )
    .map((part) => `${part}\n`)
    .join('\n');
}

function previewMarkdown(report: PreviewReport): string {
  return sectionsOf(report)
    .map(({ text, code, columns, rows }) =>
      [
        ...(text === undefined
          ? []
          : [
              `${text
                .split('\n')
                .map((line) => markdownText(line))
                .join('  \n')}\n`,
            ]),
        ...(code === undefined ? [] : [`\`\`\`yaml\n${code.trimEnd()}\n\`\`\`\n`]),
        ...(columns === undefined ? [] : [markdownTable(columns as readonly Column<unknown>[], rows ?? [])]),
      ].join('\n'),
    )
    .join('\n');
}

function previewData(report: PreviewReport): object {
  const { policy, old, new: changed, before, after, counts, groups, coverage } = report;
  return { policy, old, new: changed, before, after, isComplete: !isUnfinished(report), counts, groups, coverage };
}

function notes(report: PreviewReport): readonly string[] {
  const { before, after } = report;
  const unfinished =
    after === 'unknown'
      ? ['Nothing is known of what it would change: existing objects cannot be judged by the new version.']
      : isUnfinished(report)
        ? ['This is not all: what is Forbidden, Failed, Partial or NotRead may hide more.']
        : [];
  const isUnknownBefore = before === 'unknown' && after === 'known';
  return [
    ...unfinished,
    ...(isUnknownBefore
      ? ['Existing objects cannot be judged by the old version: all that is rejected counts as newly rejected.']
      : []),
  ];
}

/** How a policy of the cluster leaves out the namespaces of guarded objects. */
function exemption(guarded: readonly ChangeGroup[]): readonly Section[] {
  const namespaces = new Set(
    guarded.flatMap(({ namespace, kind, example }) => namespace ?? (kind === 'Namespace' ? example.name : [])),
  );
  const values = [...namespaces].toSorted();
  const spec = {
    namespaceSelector: { matchExpressions: [{ key: NAMESPACE_NAME_LABEL, operator: 'NotIn', values }] },
  };
  return values.length === 0
    ? []
    : [{ text: 'This in the spec of a policy of the cluster leaves them out:', code: dataText(spec, 'yaml') }];
}

function changeText({ change, subject }: ChangeGroup): string {
  if (subject === 'objects') {
    return CHANGES[change];
  }
  return change === 'newlyRejected' ? REJECTIONS[subject] : `${SUBJECT_TEXTS[subject][0]}: ${CHANGES[change]}`;
}

function exampleText({ example }: ChangeGroup): string {
  const { kind, namespace, name, revision, operation } = example;
  const place = namespace === undefined ? name : `${namespace}/${name}`;
  return oneLine(
    `${operation === undefined ? '' : `${operation} `}${kind} ${place}${revision === undefined ? '' : ` to revision ${revision}`}`,
  );
}

function messageText({ message = '', oldMessage, example }: ChangeGroup): string {
  return oneLine(oldMessage === undefined ? (example.patch ?? message) : `${message} (before: ${oldMessage})`);
}

function summaryLines({ counts }: PreviewReport): readonly string[] {
  const lines = SUBJECTS.flatMap((subject) => {
    const found = (Object.keys(CHANGES) as VerdictChange[]).flatMap((change) => {
      const count = counts[subject][change] ?? 0;
      return count === 0 ? [] : [{ change, count }];
    });
    const total = found.reduce((sum, { count }) => sum + count, 0);
    const [one, many] = SUBJECT_TEXTS[subject];
    const texts = found.map(({ change, count }) => `${countText(count)} ${CHANGES[change]}`);
    return total === 0 ? [] : [`${countText(total)} ${total === 1 ? one : many}: ${texts.join(', ')}`];
  });
  return lines.length === 0 ? ['no objects were judged'] : lines;
}
