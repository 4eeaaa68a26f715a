// `portcullis governance`: the policies of Open Cluster Management.
import { Command } from 'commander';
import { graphCommand } from './graph.ts';

export function governanceCommand(): Command {
  return new Command('governance')
    .description('show how governance policies depend on each other')
    .addHelpText(
      'after',
      `
Examples:
  portcullis governance graph
  portcullis governance graph -f policies/ -o dot | dot -Tsvg > policies.svg`,
    )
    .addCommand(graphCommand());
}
