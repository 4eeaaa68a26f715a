// `portcullis governance`: the policies of Open Cluster Management.
import { Command } from 'commander';
import { graphCommand } from './graph.ts';
import { rightsCommand } from './rights/rights.ts';

export function governanceCommand(): Command {
  return new Command('governance')
    .description('show how governance policies depend on each other, and which rights they need')
    .addHelpText(
      'after',
      `
Examples:
  portcullis governance graph
  portcullis governance graph -f policies/ -o dot | dot -Tsvg > policies.svg
  portcullis governance rights -f policies/`,
    )
    .addCommand(graphCommand())
    .addCommand(rightsCommand());
}
