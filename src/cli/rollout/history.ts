// `portcullis rollout history`: the revisions of a policy as a table, or one revision with its spec.
import { type Command, Option } from 'commander';
import { styled } from '../../values/index.ts';
import { ageOf, type PolicyRevision, type RevisionSummary, snapshotOf } from '../../resources/index.ts';
import { dataText, outputOption, type OutputFormat } from '../output.ts';
import { manyLines } from '../table.ts';
import { headedLines } from './headed-lines.ts';
import {
  historyCause,
  historyRows,
  listedCause,
  listedDigests,
  listedRows,
  listedSpec,
  revisionBefore,
  type RevisionModule,
  revisionModules,
  revisionSince,
  revisionState,
} from '../../rollout/history/index.ts';
import { historyTable } from './history-table.ts';
import { revisionOf } from './read-revisions.ts';
import { revisionsOrListed } from './readable-revisions.ts';
import {
  revisionNumber,
  rolloutCommandOf,
  type RolloutFlags,
  type RolloutTarget,
  withTarget,
} from './rollout-target.ts';

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
    const { from, revisions } = await revisionsOrListed(target);
    process.stdout.write(
      from === 'revisions' ? keptHistory(target, revisions, flags) : listedHistory(target, revisions, flags),
    );
  });
}

function keptHistory(target: RolloutTarget, revisions: readonly PolicyRevision[], flags: HistoryFlags): string {
  const one = flags.revision === undefined ? undefined : revisionOf(target, revisions, flags.revision);
  if (flags.output !== 'table') {
    return dataText(one ?? { apiVersion: 'v1', kind: 'List', metadata: {}, items: revisions }, flags.output, {
      pretty: true,
    });
  }
  return one === undefined
    ? `${historyTable(target.policy, historyRows(revisions))}\n`
    : revisionText(one, revisionBefore(revisions, one), Date.now());
}

function listedHistory(target: RolloutTarget, revisions: readonly RevisionSummary[], flags: HistoryFlags): string {
  const one = flags.revision === undefined ? undefined : revisionOf(target, revisions, flags.revision);
  if (flags.output !== 'table') {
    return dataText(one ?? revisions, flags.output, { pretty: true });
  }
  return one === undefined
    ? `${historyTable(target.policy, listedRows(revisions))}\n`
    : listedText(target, one, Date.now());
}

function listedText({ policy }: RolloutTarget, summary: RevisionSummary, now: number): string {
  const spec = listedSpec(policy, summary);
  const rows = [
    ['Revision', String(summary.revision)],
    ['State', `${summary.state} for ${ageOf(summary.since, now)}`],
    ['Cause', listedCause(summary)],
    ...listedDigests(summary).map((digest) => ['Digest', digest] as const),
  ] as const;
  return spec === undefined
    ? `${headedLines([...rows, ['Spec', 'not in the status of the policy']])}\n`
    : `${headedLines(rows)}\n${specText(spec)}`;
}

function revisionText(revision: PolicyRevision, previous: PolicyRevision | undefined, now: number): string {
  const { metadata, status } = revision;
  const rows = [
    ['Revision', `${revision.spec.revision}   (PolicyRevision ${metadata.namespace ?? ''}/${metadata.name ?? ''})`],
    ['State', `${revisionState(revision)} for ${ageOf(revisionSince(revision), now)}`],
    ['Cause', historyCause(revision, previous)],
    ...((status?.message ?? '') === '' ? [] : [['Message', status?.message ?? ''] as const]),
    ...((status?.nextRetry ?? '') === '' ? [] : [['Next retry', status?.nextRetry ?? ''] as const]),
    ...revisionModules(revision).map((module) => ['Module', moduleText(module)] as const),
  ] as const;
  return `${headedLines(rows)}\n${specText(snapshotOf(revision))}`;
}

function specText(spec: unknown): string {
  const lines = dataText(spec, 'yaml').trimEnd().replaceAll(/^/gm, '  ');
  return `${styled('bold', 'Spec:')}\n${manyLines(lines)}\n`;
}

function moduleText({ name, module, digest = 'not found yet', manifest, isVerified }: RevisionModule): string {
  const pulled = manifest === undefined ? '' : `, manifest ${manifest}${isVerified ? ', signatures verified' : ''}`;
  return `${name}: ${module} (${digest}${pulled})`;
}
