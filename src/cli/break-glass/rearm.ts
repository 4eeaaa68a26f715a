// `portcullis break-glass rearm`: policies that were disarmed are enforced again.
import { Command } from 'commander';
import { changeEnforcement } from './change-enforcement.ts';
import { addTargetFlags, type BreakGlassFlags } from './disarm-target.ts';

export function rearmCommand(): Command {
  return addTargetFlags(new Command('rearm').description('enforce policies again that were disarmed'))
    .addHelpText(
      'after',
      `
Examples:
  portcullis break-glass rearm cap/pinned-images
  portcullis break-glass rearm --all`,
    )
    .action((args: readonly string[], flags: BreakGlassFlags) => changeEnforcement(args, flags, undefined));
}
