// `portcullis rollout diff`: the difference between two revisions of a policy, digests of modules included.
import { type Command, Option } from 'commander';
import { type PolicyRevision, snapshotOf } from '../../resources/index.ts';
import { CliError, EXIT } from '../errors.ts';
import { dataText } from '../output.ts';
import { errorText, withoutControls } from '../../values/index.ts';
import { modulesOf, readRevisions, revisionOf, servingRevision, stateOf } from './revision-history.ts';
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
      const [from, to] = bothOf(target, await readRevisions(target), flags);
      const text = unifiedDiff(comparable(target, from), comparable(target, to));
      process.stdout.write(withoutControls(text));
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

function bothOf(
  target: RolloutTarget,
  revisions: readonly PolicyRevision[],
  flags: DiffFlags,
): readonly [from: PolicyRevision, to: PolicyRevision] {
  const from = flags.from === undefined ? servingRevision(revisions) : revisionOf(target, revisions, flags.from);
  const to = flags.to === undefined ? revisions.at(-1) : revisionOf(target, revisions, flags.to);
  if (from === undefined || to === undefined) {
    throw new CliError(`no revision of ${target.name} serves`, {
      hint: 'Name the revisions with --from NUMBER and --to NUMBER.',
    });
  }
  return [from, to];
}

/** The contents of a revision without its number and state, which always differ. */
function comparable(target: RolloutTarget, revision: PolicyRevision): { name: string; text: string } {
  return {
    name: `${target.name} revision ${revision.spec.revision} (${stateOf(revision)})`,
    text: dataText({ modules: modulesOf(revision), spec: snapshotOf(revision) }, 'yaml'),
  };
}
