// `portcullis rollout pin` and `unpin`: a pinned revision serves until the pin is removed, whatever is applied.
import { type Command, Option } from 'commander';
import { ANNOTATIONS } from '../../resources/index.ts';
import { CliError } from '../errors.ts';
import { oneLine } from '../table.ts';
import { readableRevisions, revisionOf } from './read-revisions.ts';
import {
  annotate,
  pinOf,
  revisionNumber,
  rolloutCommandOf,
  type RolloutFlags,
  type RolloutTarget,
  withTarget,
} from './rollout-target.ts';

/** Characters of the failure of a pinned revision. */
const MAX_FAILURE = 500;

interface PinFlags extends RolloutFlags {
  readonly revision?: number;
}

export function pinCommand(): Command {
  return rolloutCommandOf('pin', 'let one revision of a policy serve, whatever is applied')
    .addOption(
      new Option('--revision <number>', 'the revision (default: the one that serves)').argParser(revisionNumber),
    )
    .addHelpText(
      'after',
      `
Examples:
  portcullis rollout pin cap/pinned-images
  portcullis rollout pin cap/pinned-images --revision 2

It is the same as: kubectl annotate cap pinned-images ${ANNOTATIONS.pin}=2`,
    )
    .action(pin);
}

export function unpinCommand(): Command {
  return rolloutCommandOf('unpin', 'let the newest revision of a policy serve again')
    .addHelpText(
      'after',
      `
Example:
  portcullis rollout unpin cap/pinned-images

It is the same as: kubectl annotate cap pinned-images ${ANNOTATIONS.pin}-`,
    )
    .action(unpin);
}

async function pin(args: readonly string[], flags: PinFlags): Promise<void> {
  await withTarget(args, flags, async (target) => {
    const wanted = flags.revision ?? target.policy.status?.servingRevision ?? 0;
    if (wanted === 0) {
      throw new CliError(`no revision of ${target.name} serves`, { hint: 'Name one with --revision NUMBER.' });
    }
    const revisions = flags.revision === undefined ? undefined : await readableRevisions(target);
    const pinned = revisions === undefined ? undefined : revisionOf(target, revisions, wanted);
    const before = pinOf(target.policy);
    if (before === String(wanted)) {
      process.stdout.write(`${target.name} is pinned to revision ${wanted} already\n`);
      return;
    }
    await annotate(target, 'pin', String(wanted));
    process.stdout.write(`${target.name} pinned to revision ${wanted}${instead(before)}\n`);
    if (pinned?.status?.state === 'Failed') {
      const { reason = '', message = '' } = pinned.status;
      process.stderr.write(
        `warning: revision ${wanted} failed, so the last good one serves as long as it is pinned: ${oneLine(`${reason}: ${message}`, MAX_FAILURE)}\n`,
      );
    }
  });
}

async function unpin(args: readonly string[], flags: RolloutFlags): Promise<void> {
  await withTarget(args, flags, async (target: RolloutTarget) => {
    const before = pinOf(target.policy);
    if (before === undefined) {
      process.stdout.write(`${target.name} is not pinned\n`);
      return;
    }
    await annotate(target, 'pin', null);
    process.stdout.write(`${target.name} unpinned from revision ${oneLine(before, 20)}\n`);
  });
}

function instead(before: string | undefined): string {
  return before === undefined ? '' : `, instead of revision ${oneLine(before, 20)}`;
}
