// `portcullis rollout`: revisions, rollout status and rollback of a policy, in the manner of `kubectl rollout`.
import { Command } from 'commander';
import { diffCommand } from './diff.ts';
import { historyCommand } from './history.ts';
import { pinCommand, unpinCommand } from './pin.ts';
import { previewCommand } from './preview.ts';
import { refreshCommand } from './refresh.ts';
import { statusCommand } from './status.ts';
import { undoCommand } from './undo.ts';

export function rolloutCommand(): Command {
  const command = new Command('rollout')
    .description(
      'show the revisions of a policy and the status of its rollout; preview a change, roll back, refresh, pin',
    )
    .addHelpText(
      'after',
      `
Examples:
  portcullis rollout history cap/pinned-images
  portcullis rollout status cap pinned-images
  portcullis rollout diff cap/pinned-images
  portcullis rollout preview cap/pinned-images -f stricter.yaml
  portcullis rollout undo cap/pinned-images --to-revision 2
  portcullis rollout refresh cap/pinned-images`,
    );
  for (const make of [
    historyCommand,
    statusCommand,
    diffCommand,
    previewCommand,
    undoCommand,
    refreshCommand,
    pinCommand,
    unpinCommand,
  ]) {
    command.addCommand(make());
  }
  return command;
}
