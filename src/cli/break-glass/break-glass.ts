// `portcullis break-glass`: ends the enforcement of policies while nothing of Portcullis has to run, and begins it again.
import { Command } from 'commander';
import { disarmCommand } from './disarm.ts';
import { rearmCommand } from './rearm.ts';
import { disarmedCommand } from './disarmed.ts';

export function breakGlassCommand(): Command {
  const command = new Command('break-glass')
    .description('in an emergency: let requests pass without a policy, or without any, until it is armed again')
    .addHelpText(
      'after',
      `
Works while no controller and no policy server runs. Each command writes an event with the user and the reason.

Examples:
  portcullis break-glass disarm cap/pinned-images --reason 'INC-42: rejects every pod'
  portcullis break-glass disarm --all --reason 'INC-43: no policy server starts'
  portcullis break-glass status
  portcullis break-glass rearm --all`,
    );
  return command.addCommand(disarmCommand()).addCommand(rearmCommand()).addCommand(disarmedCommand());
}
