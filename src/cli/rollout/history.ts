// `portcullis rollout history`: the revisions of a policy as a table, or one revision with its spec.
import { type Command, Option } from 'commander';
import { styleText } from 'node:util';
import { type PolicyRevision, snapshotOf } from '../../resources/index.ts';
import { dataText, outputOption, type OutputFormat } from '../output.ts';
import { manyLines } from '../table.ts';
import { headedLines } from './headed-lines.ts';
import { historyTable, revisionBefore } from './history-table.ts';
import {
  causeOf,
  modulesOf,
  readRevisions,
  type RevisionModule,
  revisionOf,
  sinceText,
  stateOf,
} from './revision-history.ts';
import { revisionNumber, rolloutCommandOf, type RolloutFlags, withTarget } from './rollout-target.ts';

interface HistoryFlags extends RolloutFlags {
  readonly revision?: number;
  readonly output: OutputFormat;
}

export function historyCommand(): Command {
  return rolloutCommandOf('history', 'list the kept revisions of a policy')
    .addOption(new Option('--revision <number>', 'show this revision with its spec').argParser(revisionNumber))
    .addOption(outputOption())
    .addHelpText(
      'after',
      `
Examples:
  portcullis rollout history cap/pinned-images
  portcullis rollout history cap/pinned-images --revision 2 -o yaml`,
    )
    .action(history);
}

async function history(args: readonly string[], flags: HistoryFlags): Promise<void> {
  await withTarget(args, flags, async (target) => {
    const revisions = await readRevisions(target);
    const one = flags.revision === undefined ? undefined : revisionOf(target, revisions, flags.revision);
    if (flags.output !== 'table') {
      const result = one ?? { apiVersion: 'v1', kind: 'List', metadata: {}, items: revisions };
      process.stdout.write(dataText(result, flags.output, { pretty: true }));
      return;
    }
    process.stdout.write(
      one === undefined
        ? `${historyTable(target.policy, revisions)}\n`
        : revisionText(one, revisionBefore(revisions, one), Date.now()),
    );
  });
}

function revisionText(revision: PolicyRevision, previous: PolicyRevision | undefined, now: number): string {
  const { metadata, status } = revision;
  const rows = [
    ['Revision', `${revision.spec.revision}   (PolicyRevision ${metadata.namespace ?? ''}/${metadata.name ?? ''})`],
    ['State', `${stateOf(revision)} for ${sinceText(revision, now)}`],
    ['Cause', causeOf(revision, previous)],
    ...((status?.message ?? '') === '' ? [] : [['Message', status?.message ?? ''] as const]),
    ...((status?.nextRetry ?? '') === '' ? [] : [['Next retry', status?.nextRetry ?? ''] as const]),
    ...modulesOf(revision).map((module) => ['Module', moduleText(module)] as const),
  ] as const;
  const spec = dataText(snapshotOf(revision), 'yaml').trimEnd().replaceAll(/^/gm, '  ');
  return `${headedLines(rows)}\n${styleText('bold', 'Spec:')}\n${manyLines(spec)}\n`;
}

function moduleText({ name, module, digest = 'not found yet', manifest, isVerified }: RevisionModule): string {
  const pulled = manifest === undefined ? '' : `, manifest ${manifest}${isVerified ? ', signatures verified' : ''}`;
  return `${name}: ${module} (${digest}${pulled})`;
}
