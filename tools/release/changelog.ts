// The changes of a release, from conventional commits (https://www.conventionalcommits.org).

/** A commit as git prints it. */
export interface Commit {
  readonly subject: string;
  readonly body: string;
}

interface Change {
  readonly type: string;
  readonly scope: string;
  readonly description: string;
  readonly isBreaking: boolean;
}

/** Types of changes that users notice; of the others, only breaking ones are listed. */
const SECTIONS: readonly (readonly [type: string, title: string])[] = [
  ['feat', 'Features'],
  ['fix', 'Fixes'],
  ['perf', 'Performance'],
];

const SUBJECT = /^(\w+)(?:\(([^)]+)\))?(!)?: (.+)$/;

/** The format of `git log` for {@link parseCommits}. */
export const LOG_FORMAT = '%s%x00%b%x1e';

export function parseCommits(log: string): readonly Commit[] {
  return log
    .split('\x1e')
    .map((text) => text.trim())
    .filter((text) => text !== '')
    .map((text) => {
      const [subject = '', body = ''] = text.split('\0');
      return { subject, body };
    });
}

/** The changelog of a version, as Markdown. Sections without changes are left out. */
export function changelog(version: string, date: string, commits: readonly Commit[]): string {
  const changes = commits.map(changeOf).filter((change) => change !== undefined);
  const sections = [
    section(
      'Breaking changes',
      changes.filter(({ isBreaking }) => isBreaking),
    ),
    ...SECTIONS.map(([type, title]) =>
      section(
        title,
        changes.filter((change) => change.type === type && !change.isBreaking),
      ),
    ),
  ];
  return `# ${version} (${date})\n${sections.join('') || '\nNo changes that users notice.\n'}`;
}

function changeOf({ subject, body }: Commit): Change | undefined {
  const [, type, scope = '', mark, description = ''] = SUBJECT.exec(subject) ?? [];
  const isBreaking = mark !== undefined || /^BREAKING[ -]CHANGE: /m.test(body);
  return type === undefined ? undefined : { type, scope, description, isBreaking };
}

function section(title: string, changes: readonly Change[]): string {
  const lines = changes
    .toSorted((a, b) => (a.scope < b.scope ? -1 : a.scope > b.scope ? 1 : 0))
    .map(({ scope, description }) => `- ${scope === '' ? '' : `**${scope}**: `}${description}\n`);
  return lines.length === 0 ? '' : `\n## ${title}\n\n${lines.join('')}`;
}
