// `portcullis break-glass disarm`: requests pass without a policy, or without any, until `rearm`.
import { Command } from 'commander';
import { MAX_DISARM_REASON } from '../../lifecycle/index.ts';
import { usageError } from '../errors.ts';
import { oneLine } from '../table.ts';
import { changeEnforcement } from './change-enforcement.ts';
import { addTargetFlags, type BreakGlassFlags } from './disarm-target.ts';

interface DisarmFlags extends BreakGlassFlags {
  readonly reason: string;
}

export function disarmCommand(): Command {
  return addTargetFlags(
    new Command('disarm').description(
      'let requests pass without a policy, or without all of them, until they are armed again',
    ),
  )
    .requiredOption('--reason <text>', 'why, for the status, the event and those who come after you')
    .addHelpText(
      'after',
      `
A controller that runs ends the enforcement. Where none answers within --timeout, the webhooks are changed directly.

Examples:
  portcullis break-glass disarm cap/pinned-images --reason 'INC-42: rejects every pod'
  portcullis break-glass disarm --policy-server default --reason 'INC-43: no replica starts'
  portcullis break-glass disarm --all --reason 'INC-43: no policy server starts'`,
    )
    .action(disarm);
}

async function disarm(args: readonly string[], flags: DisarmFlags): Promise<void> {
  const reason = flags.reason.trim();
  if (reason === '' || reason.length > MAX_DISARM_REASON || oneLine(reason) !== reason) {
    throw usageError(`--reason: expected 1 to ${MAX_DISARM_REASON} printable characters in one line`);
  }
  await changeEnforcement(args, flags, reason);
}
