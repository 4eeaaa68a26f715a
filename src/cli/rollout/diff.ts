// `portcullis rollout diff`: the difference between two revisions of a policy, digests of modules included.
import { type Command, Option } from 'commander';
import { type PolicyRevision, type RevisionSummary, snapshotOf } from '../../resources/index.ts';
import { CliError, EXIT } from '../errors.ts';
import { dataText } from '../output.ts';
import { errorText } from '../../values/index.ts';
import { keptServing, listedDigests, revisionModules, revisionState } from '../../rollout/history/index.ts';
import { revisionOf } from './read-revisions.ts';
import { requiredSpec, revisionsOrListed } from './readable-revisions.ts';
import {
  revisionNumber,
  rolloutCommandOf,
  type RolloutFlags,
  type RolloutTarget,
  withTarget,
} from './rollout-target.ts';
import { unifiedDiff } from './unified-diff.ts';

interface DiffFlags extends RolloutFlags {
  readonly from?: number;
  readonly to?: number;
}

/** Exit codes as those of `diff`. */
const EXIT_DIFFERENT = 1;
const EXIT_FAILED = 2;

export function diffCommand(): Command {
  return rolloutCommandOf('diff', 'show the difference between two revisions; exit code 1 if there is one')
    .addOption(
      new Option('--from <number>', 'the first revision (default: the one that serves)').argParser(revisionNumber),
    )
    .addOption(new Option('--to <number>', 'the second revision (default: the newest)').argParser(revisionNumber))
    .addHelpText(
      'after',
      `
Examples:
  portcullis rollout diff cap/pinned-images
  portcullis rollout diff cap/pinned-images --from 1 --to 3

Exit code: 0 when they are the same, 1 when they differ, 2 when they could not be compared.`,
    )
    .action(diff);
}

async function diff(args: readonly string[], flags: DiffFlags): Promise<void> {
  try {
    await withTarget(args, flags, async (target) => {
      const { from, revisions } = await revisionsOrListed(target);
      const [one, other] =
        from === 'revisions' ? keptTexts(target, revisions, flags) : listedTexts(target, revisions, flags);
      const text = unifiedDiff(one, other);
      process.stdout.write(text);
      process.exitCode = text === '' ? EXIT.ok : EXIT_DIFFERENT;
    });
  } catch (error) {
    const hint = error instanceof CliError ? error.hint : undefined;
    throw new CliError(errorText(error), {
      exitCode: EXIT_FAILED,
      cause: error,
      ...(hint === undefined ? {} : { hint }),
    });
  }
}

interface ComparedText {
  readonly name: string;
  readonly text: string;
}

function keptTexts(
  target: RolloutTarget,
  revisions: readonly PolicyRevision[],
  flags: DiffFlags,
): readonly [from: ComparedText, to: ComparedText] {
  const both = bothOf(target, revisions, keptServing(revisions), flags);
  return both.map((revision) => {
    const content = { modules: revisionModules(revision), spec: snapshotOf(revision) };
    return comparedText(target, revision.spec.revision, revisionState(revision), content);
  }) as [ComparedText, ComparedText];
}

function listedTexts(
  target: RolloutTarget,
  revisions: readonly RevisionSummary[],
  flags: DiffFlags,
): readonly [from: ComparedText, to: ComparedText] {
  const { servingRevision: number } = target.policy.status ?? {};
  const serving = revisions.find(({ revision }) => revision === number);
  const both = bothOf(target, revisions, serving, flags);
  return both.map((summary) => {
    const content = { digests: listedDigests(summary), spec: requiredSpec(target, summary) };
    return comparedText(target, summary.revision, summary.state, content);
  }) as [ComparedText, ComparedText];
}

function bothOf<Revision extends PolicyRevision | RevisionSummary>(
  target: RolloutTarget,
  revisions: readonly Revision[],
  serving: Revision | undefined,
  flags: DiffFlags,
): readonly [from: Revision, to: Revision] {
  const from = flags.from === undefined ? serving : revisionOf(target, revisions, flags.from);
  const to = flags.to === undefined ? revisions.at(-1) : revisionOf(target, revisions, flags.to);
  if (from === undefined || to === undefined) {
    throw new CliError(`no revision of ${target.name} serves`, {
      hint: 'Name the revisions with --from NUMBER and --to NUMBER.',
    });
  }
  return [from, to];
}

/** The contents of a revision without its number and state, which always differ. */
function comparedText({ name }: RolloutTarget, number: number, state: string, content: object): ComparedText {
  return { name: `${name} revision ${number} (${state})`, text: dataText(content, 'yaml') };
}
